package main

import (
	"errors"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

// startNATS starts a NATS server in this process. It returns its address, and a function that stops
// it.
func startNATS() (address string, end func(), err error) {
	s, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, NoLog: true, NoSigs: true})
	if err != nil {
		return "", nil, err
	}
	end = func() {
		s.Shutdown()
		s.WaitForShutdown()
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		end()
		return "", nil, errors.New("the NATS server does not start")
	}
	return s.Addr().String(), end, nil
}
