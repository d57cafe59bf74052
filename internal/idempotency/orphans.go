package idempotency

import (
	"container/list"
	"time"
)

// orphanedCalls are the durable calls that still run after the end of their sessions: their answers
// are for later sessions. They are guarded by the lock of the Answers.
type orphanedCalls struct {
	most, mostOfOwner int           // bounds, in all and of one owner; fixed, as the next
	lifetime          time.Duration // bounds the time without a session
	list              list.List     // of *Answer, the oldest first
}

// add adds the call of m, for as long as its answer would be remembered. If there are too many of
// its owner, or too many in all, or if closed is true, it removes and returns a call that is to be
// canceled.
func (o *orphanedCalls) add(m *Answer, closed bool) (canceled Call) {
	p := m.pending
	if p == nil || p.alone != nil || !m.moveLocked(outlives) {
		return nil
	}
	c := p.call
	p.alone = o.list.PushBack(m)
	m.share.alone++
	m.share.tally(c.Weight()) // the session no longer counts it
	p.lapse = time.AfterFunc(o.lifetime, c.Cancel)
	one := m
	switch {
	case m.share.alone > o.mostOfOwner:
		one = o.oldest(m.share)
	case closed:
	case o.list.Len() > o.most:
		one = o.dispensable()
	default:
		return nil
	}
	canceled = one.pending.call
	o.remove(one)
	one.moveLocked(cancels)
	return canceled
}

// dispensable returns the call to be canceled: the oldest of the owner with most orphans.
func (o *orphanedCalls) dispensable() (one *Answer) {
	for e := o.list.Front(); e != nil; e = e.Next() {
		m := e.Value.(*Answer)
		if one == nil || m.share.alone > one.share.alone {
			one = m
		}
	}
	return one
}

// oldest returns the oldest of one owner, which must have one.
func (o *orphanedCalls) oldest(s *share) *Answer {
	for e := o.list.Front(); ; e = e.Next() {
		if m := e.Value.(*Answer); m.share == s {
			return m
		}
	}
}

// remove removes m, if it is an orphan.
func (o *orphanedCalls) remove(m *Answer) {
	p := m.pending
	if p == nil || p.alone == nil {
		return
	}
	p.lapse.Stop()
	o.list.Remove(p.alone)
	m.share.alone--
	m.share.tally(-p.call.Weight())
	p.alone, p.lapse = nil, nil
}
