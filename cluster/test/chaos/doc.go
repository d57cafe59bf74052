// Package chaos contains only tests: replicas of a name share their records of durable calls and
// take posted ones, while replicas are killed, paused and shut down, NATS servers are restarted and
// wires are cut. Each replica and each server is a process. A register next to each replica records
// the start and end of calls there, from which the outcome of each call can be checked afterwards.
//
//	go test ./chaos                                     # some seconds of trouble
//	go test ./chaos -timeout 2h -args -soak -chaos 10m  # ten minutes, three servers too
//	go test ./chaos -args -chaos.seed 4711              # the same trouble once more
package chaos
