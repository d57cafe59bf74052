package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net/rpc"
)

// rawConn is the common part of both sides of a codec for net/rpc with bytes as bodies. A message
// is a sequence number (8 bytes), the length of a text (1), the length of the body (4), the text
// and the body. The text is the method of a request and the error of a response.
type rawConn struct {
	c    io.Closer
	r    *bufio.Reader
	w    *bufio.Writer
	head [rawHead]byte // of outgoing messages
	body int           // length of the next one
	text []byte
}

const rawHead = 8 + 1 + 4

func newRawConn(c io.ReadWriteCloser) rawConn {
	return rawConn{c: c, r: bufio.NewReader(c), w: bufio.NewWriter(c)}
}

func (c *rawConn) Close() error { return c.c.Close() }

func (c *rawConn) write(seq uint64, text string, body []byte) error {
	if len(text) > 255 {
		text = text[:255]
	}
	binary.BigEndian.PutUint64(c.head[:], seq)
	c.head[8] = byte(len(text))
	binary.BigEndian.PutUint32(c.head[9:], uint32(len(body)))
	c.w.Write(c.head[:]) // Flush returns the first error
	c.w.WriteString(text)
	c.w.Write(body)
	return c.w.Flush()
}

// readHead reads the fields before the body.
func (c *rawConn) readHead() (seq uint64, text string, err error) {
	head, err := c.r.Peek(rawHead)
	if err != nil {
		return 0, "", err
	}
	seq, n := binary.BigEndian.Uint64(head), int(head[8])
	c.body = int(binary.BigEndian.Uint32(head[9:]))
	c.r.Discard(rawHead) // peeked before
	if cap(c.text) < n {
		c.text = make([]byte, 255)
	}
	_, err = io.ReadFull(c.r, c.text[:n])
	return seq, string(c.text[:n]), err
}

// readBody stores the body in to, a *[]byte, or discards it if to is nil.
func (c *rawConn) readBody(to any) error {
	b, ok := to.(*[]byte)
	if !ok {
		_, err := c.r.Discard(c.body)
		return err
	}
	if cap(*b) < c.body {
		*b = make([]byte, c.body)
	}
	*b = (*b)[:c.body]
	_, err := io.ReadFull(c.r, *b)
	return err
}

// rawClientCodec implements rpc.ClientCodec.
type rawClientCodec struct{ rawConn }

func newRawClientCodec(c io.ReadWriteCloser) rpc.ClientCodec { return &rawClientCodec{newRawConn(c)} }

func (c *rawClientCodec) WriteRequest(r *rpc.Request, body any) error {
	b, ok := body.([]byte)
	if !ok {
		return fmt.Errorf("want bytes, got %T", body)
	}
	return c.write(r.Seq, r.ServiceMethod, b)
}

func (c *rawClientCodec) ReadResponseHeader(r *rpc.Response) (err error) {
	r.Seq, r.Error, err = c.readHead()
	return err
}

func (c *rawClientCodec) ReadResponseBody(body any) error { return c.readBody(body) }

// rawServerCodec implements rpc.ServerCodec.
type rawServerCodec struct{ rawConn }

func newRawServerCodec(c io.ReadWriteCloser) rpc.ServerCodec { return &rawServerCodec{newRawConn(c)} }

func (c *rawServerCodec) ReadRequestHeader(r *rpc.Request) (err error) {
	r.Seq, r.ServiceMethod, err = c.readHead()
	return err
}

func (c *rawServerCodec) ReadRequestBody(body any) error { return c.readBody(body) }

func (c *rawServerCodec) WriteResponse(r *rpc.Response, body any) error {
	b, ok := body.(*[]byte)
	if !ok {
		return c.write(r.Seq, r.Error, nil) // an error has no body
	}
	return c.write(r.Seq, r.Error, *b)
}
