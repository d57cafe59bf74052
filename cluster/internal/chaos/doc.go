// Package chaos has tests only: replicas of a name, which remember durable calls together and take
// posted ones, while they are killed, paused and shut down, servers of NATS are restarted and wires
// are cut. Each replica and each server is a process. A register beside each replica says what has
// begun and ended there, so that it can be told afterwards what became of each call.
//
//	go test ./internal/chaos                                     # some seconds of trouble
//	go test ./internal/chaos -timeout 2h -args -soak -chaos 10m  # ten minutes, three servers too
//	go test ./internal/chaos -args -chaos.seed 4711              # the same trouble once more
package chaos
