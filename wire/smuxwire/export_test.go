package smuxwire

// WithVersion sets the version of smux.
func WithVersion(v int) Option { return func(c *config) { c.version = v } }
