// Package tied is what the tests of knot measure.
package tied

import "io"

// Session has five fields, two of them in a struct without a name.
type Session struct {
	a, b int
	io.Reader
	c struct{ d, e int }
}

func (s *Session) one() { s.two() }
