package outbox

// flushes tells when everything that was put before a certain moment has been given to the Wire,
// although priorities let later messages overtake.
type flushes struct {
	begun uint32 // how many have begun; a queued message remembers it
	taken uint64 // batches taken so far
	open  []*flush
}

// flush is one moment for which somebody waits.
type flush struct {
	seq    uint32 // messages that remember a smaller number were put before it
	queued int    // how many of those still are in the queue
	take   uint64 // the batch, by number, that holds the last of them
	done   chan struct{}
}

// begin returns a channel that is closed when the queued messages, and the batches that come before
// them, have been given to the Wire. departing says that the next batch is one of those.
func (f *flushes) begin(queued int, departing bool) (done <-chan struct{}) {
	f.begun++
	fl := &flush{seq: f.begun, queued: queued, take: f.taken, done: make(chan struct{})}
	if departing {
		fl.take++
	}
	f.open = append(f.open, fl)
	return fl.done
}

// dequeued notes that m has left the queue. departed says that it is in the batch which is taken
// next: otherwise it was dropped.
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

// written notes that every batch taken so far has been given to the Wire.
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
