package asterisque

import (
	"container/list"
	"time"
)

// orphanedCalls are the durable calls that still run after the end of their sessions: their answers
// are for later sessions. They are guarded by the lock of the durableAnswers.
type orphanedCalls struct {
	most, mostOfOwner int           // bounds, in all and of one owner; fixed, as the next
	lifetime          time.Duration // bounds the time without a session
	list              list.List     // of *durableAnswer, the oldest first
}

// add adds the call of m, for as long as its answer would be remembered. If there are too many of
// its owner, or too many in all, or if closed is true, it removes and returns a call that is to be
// canceled.
func (o *orphanedCalls) add(m *durableAnswer, closed bool) (canceled durableJob) {
	p := m.pending
	if p == nil || p.alone != nil || !m.moveLocked(durableOutlives) {
		return nil
	}
	c := p.call
	p.alone = o.list.PushBack(m)
	m.share.alone++
	m.share.tally(c.Weight()) // the session no longer counts it
	p.lapse = time.AfterFunc(o.lifetime, c.cancel)
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
	one.moveLocked(durableCancel)
	return canceled
}

// dispensable returns the call to be canceled: the oldest of the owner with most orphans.
func (o *orphanedCalls) dispensable() (one *durableAnswer) {
	for e := o.list.Front(); e != nil; e = e.Next() {
		m := e.Value.(*durableAnswer)
		if one == nil || m.share.alone > one.share.alone {
			one = m
		}
	}
	return one
}

// oldest returns the oldest of one owner, which must have one.
func (o *orphanedCalls) oldest(s *durableShare) *durableAnswer {
	for e := o.list.Front(); ; e = e.Next() {
		if m := e.Value.(*durableAnswer); m.share == s {
			return m
		}
	}
}

// remove removes m, if it is an orphan.
func (o *orphanedCalls) remove(m *durableAnswer) {
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
