package asterisque

import (
	"context"

	"github.com/asterisque-go/asterisque/codec/message"
)

// MetadataOf returns what travels with the call that a handler serves, whose context ctx is, or is
// derived from. It is nil if that is nothing, and for all other contexts. Each call of MetadataOf
// decodes it anew, and what it returns belongs to whoever calls it.
func MetadataOf(ctx context.Context) Metadata {
	by, _ := carriedBy(ctx)
	if c, ok := by.(*served); ok {
		return c.metadata()
	}
	return nil
}

// metadata returns what travels with c, decoded anew each time, or nil.
func (c *served) metadata() Metadata {
	if c.rare == nil || c.rare.metadata == "" {
		return nil
	}
	// it was checked when it came
	m, _ := message.ParseMetadata([]byte(c.rare.metadata))
	return m
}
