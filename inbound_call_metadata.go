package asterisque

import (
	"context"

	"github.com/asterisque-go/asterisque/codec/message"
)

// MetadataOf returns the metadata of the call that a handler serves. ctx is the handler's context,
// or derived from it. MetadataOf returns nil if there is no metadata, and for all other contexts.
// Each call decodes the metadata again, and the caller owns the result.
func MetadataOf(ctx context.Context) Metadata {
	by, _ := carriedBy(ctx)
	if c, ok := by.(*inboundCall); ok {
		return c.metadata()
	}
	return nil
}

// metadata returns the metadata of c, decoded again each time, or nil.
func (c *inboundCall) metadata() Metadata {
	if c.extras == nil || c.extras.metadata == "" {
		return nil
	}
	// checked on arrival
	m, _ := message.ParseMetadata([]byte(c.extras.metadata))
	return m
}
