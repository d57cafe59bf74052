package quicwire

import (
	"crypto/tls"
	"errors"
	"time"

	"github.com/quic-go/quic-go"
)

// alpn is the application protocol that both sides agree on. It prevents accidental connections to
// other protocols.
const alpn = "asterisque/1"

const scheme = "quic"

const (
	handshakeTime = 5 * time.Second // a dial without an answer fails after this time
	// below the time after which routers forget a UDP flow, often 30 s; above the interval of a
	// session's own pings
	keepAlive = 20 * time.Second
	idleTime  = 60 * time.Second // above the time after which a session considers its peer lost
	// a listener closes a connection without a session after this time
	unused      = 30 * time.Second
	sessions    = 100       // maximum on one connection
	firstWindow = 512 << 10 // bytes that a Wire buffers at first
	// bytes that a Wire buffers for a reader that keeps up; a round trip of 100 ms then allows 40
	// MB/s
	mostWindow = 4 << 20
	connWindow = 32 << 20 // bytes that all wires of a connection buffer together
)

// The codes with which this package ends a connection or one direction of a stream, for the peer's
// error and for tools. 0 is a graceful end.
const (
	codeClosed quic.StreamErrorCode      = 1 // the Wire was closed, and reads no more
	codeUnused quic.ApplicationErrorCode = 2 // the peer opened no session
)

// config is for connections on which the peer may open up to incoming sessions.
func config(incoming int64) *quic.Config {
	return &quic.Config{
		HandshakeIdleTimeout:           handshakeTime,
		KeepAlivePeriod:                keepAlive,
		MaxIdleTimeout:                 idleTime,
		InitialStreamReceiveWindow:     firstWindow,
		MaxStreamReceiveWindow:         mostWindow,
		InitialConnectionReceiveWindow: connWindow,
		MaxConnectionReceiveWindow:     connWindow,
		MaxIncomingStreams:             incoming,
		MaxIncomingUniStreams:          -1, // none
	}
}

// clientTLS returns a copy of c with unset fields filled in.
func clientTLS(c *tls.Config, host string) *tls.Config {
	c = withProtocol(c)
	if c.ServerName == "" {
		c.ServerName = host
	}
	return c
}

// serverTLS returns a copy of c with unset fields filled in.
func serverTLS(c *tls.Config) (*tls.Config, error) {
	c = withProtocol(c)
	if len(c.Certificates) == 0 && c.GetCertificate == nil && c.GetConfigForClient == nil {
		return nil, errors.New("there is no certificate; put one into Options.TLS.Certificates, for example with tls.LoadX509KeyPair")
	}
	c.SessionTicketsDisabled = true // see wire.Options
	if choose := c.GetConfigForClient; choose != nil {
		c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := choose(hello)
			if chosen != nil { // QUIC does not work without a protocol
				chosen = withProtocol(chosen)
				chosen.SessionTicketsDisabled = true
			}
			return chosen, err
		}
	}
	return c, nil
}

func withProtocol(c *tls.Config) *tls.Config {
	if c == nil {
		c = &tls.Config{MinVersion: tls.VersionTLS13}
	}
	c = c.Clone()
	if len(c.NextProtos) == 0 {
		c.NextProtos = []string{alpn}
	}
	return c
}
