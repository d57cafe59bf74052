package main

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
)

// door is an address in front of several targets: each connection to it is forwarded to one of
// them. It represents any network between two programs: routers, load balancers, radio.
type door struct {
	addr  string // these are fixed
	to    []string
	wires *wires

	ln      net.Listener // nil while the door is shut; for one goroutine
	running sync.WaitGroup
}

// newDoor opens a door at a free port.
func newDoor(w *wires, to ...string) (*door, error) {
	d := &door{addr: "127.0.0.1:0", to: to, wires: w}
	if err := d.open(); err != nil {
		return nil, err
	}
	d.addr = d.ln.Addr().String()
	return d, nil
}

// open starts to accept connections.
func (d *door) open() (err error) {
	if d.ln, err = net.Listen("tcp", d.addr); err != nil {
		return err
	}
	ln := d.ln
	d.running.Go(func() { // ends with ln
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			d.running.Go(func() { d.carry(near) }) // ends with either end of the wire, or its cut
		}
	})
	return nil
}

// shut stops accepting connections, as if the machine behind the door was switched off.
func (d *door) shut() error {
	if d.ln == nil {
		return nil
	}
	err := d.ln.Close()
	d.ln = nil
	return err
}

// url is the URL of the door.
func (d *door) url() string { return "tcp://" + d.addr }

// carry forwards bytes between near and one of the targets, in both directions, until either ends.
func (d *door) carry(near net.Conn) {
	far, err := d.dial()
	if err != nil {
		near.Close()
		return
	}
	w := &cuttable{near, far}
	if !d.wires.add(w) {
		w.close()
		return
	}
	defer d.wires.remove(w)
	var back sync.WaitGroup
	back.Go(func() { w.copy(near, far) }) // ends with the wire
	w.copy(far, near)
	back.Wait()
}

// dial connects to any of the targets that answers.
func (d *door) dial() (net.Conn, error) {
	var all error
	for _, n := range rand.Perm(len(d.to)) {
		c, err := net.Dial("tcp", d.to[n])
		if err == nil {
			return c, nil
		}
		all = errors.Join(all, err)
	}
	return nil, all
}

// cuttable is a wire through a door.
type cuttable struct{ near, far net.Conn } // fixed

// copy forwards bytes from one end to the other one, until the wire is over.
func (w *cuttable) copy(to, from net.Conn) {
	io.Copy(to, from)
	w.close()
}

func (w *cuttable) close() {
	w.near.Close()
	w.far.Close()
}

// cut cuts the wire: bytes in flight are lost, even those that an end has reported as sent.
func (w *cuttable) cut() {
	for _, c := range []net.Conn{w.near, w.far} {
		c.(*net.TCPConn).SetLinger(0)
	}
	w.close()
}
