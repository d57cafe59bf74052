package quicwire

import "net"

// failedConn takes the place of a failed connection.
type failedConn struct {
	err           error
	local, remote net.Addr
}

// Read implements io.Reader.
func (f failedConn) Read([]byte) (int, error) { return 0, f.err }

// Write implements io.Writer.
func (f failedConn) Write([]byte) (int, error) { return 0, f.err }

// Close implements io.Closer.
func (f failedConn) Close() error { return nil }

// LocalAddr is as in net.Conn.
func (f failedConn) LocalAddr() net.Addr { return f.local }

// RemoteAddr is as in net.Conn.
func (f failedConn) RemoteAddr() net.Addr { return f.remote }
