package asterisque

import (
	"github.com/asterisque-go/asterisque/codec/message"
)

// metadata returns the metadata of c, decoded again each time, or nil.
func (c *inboundCall) metadata() map[string]any {
	if c.extras == nil || c.extras.metadata == "" {
		return nil
	}
	// checked on arrival
	m, _ := message.ParseMetadata([]byte(c.extras.metadata))
	return m
}
