package flow

// Load is the state of one class: its minimum in bytes, the bytes that are granted, and the number
// of waiting requests.
type Load struct{ Minimum, Granted, Waiting int }

// Loads has the Load of each class.
type Loads [classes]Load

// Windows returns the sum of the classes of windows.
func (l Loads) Windows() (sum Load) {
	for _, c := range [...]Class{Served, Made, Elastic} {
		sum.Minimum += l[c].Minimum
		sum.Granted += l[c].Granted
	}
	return sum
}

// Load returns the present state of each class.
func (b *Budget) Load() (all Loads) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.free {
		n := b.plan.Minimum(Class(c))
		all[c] = Load{Minimum: n, Granted: n - b.free[c]}
	}
	all[Initial].Granted = b.extraLeft()
	all[Elastic].Granted -= b.extraLeft()
	if b.queues != nil {
		all[Made].Waiting, all[Large].Waiting = b.queues.made.len, b.queues.large.len
	}
	return all
}
