package asterisque

import (
	"container/list"
	"time"
)

// orphans are the durable calls that run on although their sessions have ended: their answers are
// for the next ones. They are guarded by the lock of the durableAnswers.
type orphans struct {
	most, mostOfOwner int           // how many there may be, and of one owner; fixed, as the next
	lifetime          time.Duration // how long each may run on
	list              list.List     // of *durableAnswer, the oldest first
}

// add lets the call of m run on, for as long as its answer would be remembered. If too many of its
// owner do, or too many of all, or if closed is true, it returns one that is to be canceled, which
// is no orphan any more.
func (o *orphans) add(m *durableAnswer, closed bool) (canceled durableJob) {
	p := m.pending
	if p == nil || p.alone != nil || !m.moveLocked(durableOutlives) {
		return nil
	}
	c := p.call
	p.alone = o.list.PushBack(m)
	m.share.alone++
	m.share.owner.tally.Add(c.weight()) // of which the session tells no more
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

// dispensable returns which of them is to end: of the owner who has most of them, the oldest.
func (o *orphans) dispensable() (one *durableAnswer) {
	for e := o.list.Front(); e != nil; e = e.Next() {
		m := e.Value.(*durableAnswer)
		if one == nil || m.share.alone > one.share.alone {
			one = m
		}
	}
	return one
}

// oldest returns the oldest of one owner, who must have one.
func (o *orphans) oldest(s *durableShare) *durableAnswer {
	for e := o.list.Front(); ; e = e.Next() {
		if m := e.Value.(*durableAnswer); m.share == s {
			return m
		}
	}
}

// remove takes m out, if it is one of them.
func (o *orphans) remove(m *durableAnswer) {
	p := m.pending
	if p == nil || p.alone == nil {
		return
	}
	p.lapse.Stop()
	o.list.Remove(p.alone)
	m.share.alone--
	m.share.owner.tally.Add(-p.call.weight())
	p.alone, p.lapse = nil, nil
}
