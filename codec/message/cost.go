package message

// Cost returns the part of the receiver's promised room that m uses: its parameters, the strings of
// its meta, and the overhead that the receiver announces. A stream also pays its early credit in
// advance. The cost of an Open that is to be sent is that of the Open that ParseOpen returns for
// it.
func (m *Open) Cost(overhead, early uint64) uint64 {
	// Strings is 0 before the Open is sent
	strings := max(m.Meta.Strings, m.Meta.sent())
	cost := uint64(len(m.Params)) + uint64(strings) + overhead
	if m.Meta.Stream {
		cost += early
	}
	return cost
}

// sent returns the bytes of byte strings of m in an Open.
func (m *Meta) sent() int { return len(m.Trace) + len(m.Key) + len(m.Metadata) }

// Cost returns the part of its window that m uses: its payload, and the overhead that the receiver
// announces. The end of a stream costs nothing.
func (m *Block) Cost(overhead uint64) uint64 {
	if m.End {
		return 0
	}
	return uint64(len(m.Payload)) + overhead
}
