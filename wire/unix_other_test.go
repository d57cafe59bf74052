//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package wire_test

const contender = "WIRE_TEST_CONTENDER"

func contend() {}
