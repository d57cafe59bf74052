package main

import "github.com/asterisque-go/asterisque"

// part is a process in the cluster.
type part struct {
	name, id, instance string
	agents             int // of a depot: how many of its agents are in the cluster
	at                 asterisque.Caller
}

// answer is the answer of a process, or an error.
type answer struct {
	part
	figures figures
	err     error
}
