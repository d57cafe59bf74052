package transport

import "crypto/tls"

// TLSConfig returns a copy of c, which may be nil, with what wire.Options promises filled in: TLS
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
