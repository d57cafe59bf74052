package outbox

// flushes tells when everything that was put before a certain moment has been given to the Wire,
// although priorities let later messages overtake.
type flushes struct {
	begun uint32 // how many have begun; a queued message remembers it
	taken uint64 // batches taken so far
	open  []*flush
}

type flush struct {
	seq  uint32 // messages that remember a smaller number were put before it
	left int    // how many of those are still queued
	take uint64 // the batch, by number, that holds the last of them
	done chan struct{}
}

// Flush returns a channel that is closed when all that has been put before was given to the Wire,
// or dropped. If the Outbox is closed first, it never is.
func (o *Outbox) Flush() <-chan struct{} {
	o.mu.Lock()
	defer o.unlock()
	o.admitLocked()
	done := make(chan struct{})
	if !o.writing.Load() && len(o.batch) == 0 && o.queue.Len() == 0 && o.controls.empty() {
		// who has just entered may not be the writer yet
		close(done)
		return done
	}
	f := &o.flushes
	f.begun++
	take := f.taken                              // what the writer holds
	if len(o.batch) > 0 || !o.controls.empty() { // which go with the next batch
		take++
	}
	f.open = append(f.open, &flush{seq: f.begun, left: o.queue.Len(), take: take, done: done})
	return done
}

// left notes that m is no longer queued; departed says that it is in the batch which is taken next.
func (f *flushes) left(m *Message, departed bool) {
	for _, fl := range f.open {
		if m.flush >= fl.seq {
			continue
		}
		fl.left--
		if departed {
			fl.take = f.taken + 1
		}
	}
}

// written notes that every batch taken so far has been given to the Wire.
func (f *flushes) written() {
	kept := f.open[:0]
	for _, fl := range f.open {
		if fl.left == 0 && fl.take <= f.taken {
			close(fl.done)
		} else {
			kept = append(kept, fl)
		}
	}
	clear(f.open[len(kept):])
	f.open = kept
}
