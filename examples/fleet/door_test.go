package main

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// enough is the time after which a test fails that waits for an event. It is longer than any slow
// machine needs.
const enough = 2 * time.Minute

// echo returns the address of a server that sends back all bytes.
func echo(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	go func() { // ends with ln
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { // ends with the other end of c
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	return ln.Addr().String()
}

// doorTo returns a door that is closed when the test ends.
func doorTo(t *testing.T, to ...string) *door {
	d, err := newDoor(newWires(), to...)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, d.shut())
		d.wires.close()
		d.running.Wait()
	})
	return d
}

// through returns a working connection through a door.
func through(t *testing.T, d *door) net.Conn {
	c, err := net.Dial("tcp", d.addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(enough)))
	require.NoError(t, carries(c))
	return c
}

// carries returns an error if sent bytes do not come back.
func carries(c net.Conn) error {
	if _, err := c.Write([]byte("there?")); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 6))
	return err
}

// A door forwards to any target that answers.
func TestDoor_AnyTarget(t *testing.T) {
	nobody, err := freeAddrs(1)
	require.NoError(t, err)
	d := doorTo(t, nobody[0], echo(t))
	for range 10 {
		through(t, d)
	}
}

// A door without a target ends connections.
func TestDoor_NoTarget(t *testing.T) {
	nobody, err := freeAddrs(1)
	require.NoError(t, err)
	c, err := net.Dial("tcp", doorTo(t, nobody[0]).addr)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(enough)))
	require.Error(t, carries(c))
}

// A shut door refuses connections until it is opened.
func TestDoor_Shut(t *testing.T) {
	d := doorTo(t, echo(t))
	before := through(t, d)
	require.NoError(t, d.shut())
	require.NoError(t, d.shut(), "once more does nothing")
	_, err := net.Dial("tcp", d.addr)
	require.Error(t, err)
	require.NoError(t, carries(before), "an open connection continues")
	require.NoError(t, d.open())
	through(t, d)
}

// Wires are cut one after the other.
func TestWires_CutInTurn(t *testing.T) {
	d := doorTo(t, echo(t))
	trouble := d.wires.trouble(time.Second)
	require.NoError(t, trouble.begin(t.Context()))
	for n := range 3 {
		c, err := net.Dial("tcp", d.addr)
		require.NoError(t, err)
		for carries(c) == nil {
			require.NoError(t, rest(t.Context(), time.Millisecond))
		}
		c.Close()
		require.Greater(t, d.wires.count(), n)
	}
	require.NoError(t, trouble.mend(t.Context()))
	cut := d.wires.count()
	require.NoError(t, carries(through(t, d)))
	require.Equal(t, cut, d.wires.count())
}

// A wire that is added after the end is closed.
func TestWires_LateWire(t *testing.T) {
	d := doorTo(t, echo(t))
	before := through(t, d)
	d.wires.close()
	require.Error(t, carries(before))
	c, err := net.Dial("tcp", d.addr)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(enough)))
	require.Error(t, carries(c))
}

// Other troubles are spread over the time of one.
func TestWires_OtherTroubles(t *testing.T) {
	all := trouble{lasts: 20 * time.Second, meanwhile: []trouble{{lasts: 4 * time.Second}, {lasts: time.Second}}}
	require.Equal(t, 5*time.Second, all.pause())
	all.lasts = time.Second
	require.Zero(t, all.pause())
}
