package transport

import (
	"crypto/tls"
	"errors"
)

// TLSConfig returns a copy of c, which may be nil, with the defaults of wire.Options filled in: TLS
// 1.3, and protocol as the application protocol (ALPN), unless c names others.
func TLSConfig(c *tls.Config, protocol string) *tls.Config {
	if c == nil {
		c = new(tls.Config)
	}
	c = c.Clone()
	if c.MinVersion == 0 {
		c.MinVersion = tls.VersionTLS13
	}
	if len(c.NextProtos) == 0 {
		c.NextProtos = []string{protocol}
	}
	return c
}

// ServerTLS returns the configuration of a listener: that of [TLSConfig] without session tickets,
// for the reason that wire.Options gives. The error reports that c has no certificate.
func ServerTLS(c *tls.Config, protocol string) (*tls.Config, error) {
	c = TLSConfig(c, protocol)
	if len(c.Certificates) == 0 && c.GetCertificate == nil && c.GetConfigForClient == nil {
		return nil, errors.New("there is no certificate; put one into Options.TLS.Certificates, for example with tls.LoadX509KeyPair")
	}
	c.SessionTicketsDisabled = true
	return c, nil
}
