package outbox

// flushes determines when all messages put before a given moment have been written to the Wire,
// although later messages of a higher priority may overtake them.
type flushes struct {
	begun uint32 // number of flushes begun; a queued message remembers it
	taken uint64 // batches taken so far
	open  []*flush
}

// flush is one moment for which a caller waits.
type flush struct {
	seq    uint32 // messages that remember a smaller number were put before it
	queued int    // number of those that are still queued
	take   uint64 // number of the batch that holds the last of them
	done   chan struct{}
}

// begin returns a channel that is closed when the queued messages, and the batches before them,
// have been written to the Wire. departing reports that the next batch is one of these batches.
func (f *flushes) begin(queued int, departing bool) (done <-chan struct{}) {
	f.begun++
	fl := &flush{seq: f.begun, queued: queued, take: f.taken, done: make(chan struct{})}
	if departing {
		fl.take++
	}
	f.open = append(f.open, fl)
	return fl.done
}

// dequeued records that m has left the queue. departed reports that m is in the next batch;
// otherwise m was dropped.
func (f *flushes) dequeued(m *Message, departed bool) {
	for _, fl := range f.open {
		if m.flush >= fl.seq {
			continue
		}
		fl.queued--
		if departed {
			fl.take = f.taken + 1
		}
	}
}

// written records that all batches taken so far have been written to the Wire.
func (f *flushes) written() {
	kept := f.open[:0]
	for _, fl := range f.open {
		if fl.queued == 0 && fl.take <= f.taken {
			close(fl.done)
		} else {
			kept = append(kept, fl)
		}
	}
	clear(f.open[len(kept):])
	f.open = kept
}
