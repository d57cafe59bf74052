package asterisque

import "context"

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
func (c *served) metadata() Metadata { return nil }
