package presence

// Watcher turns the state of a view into changes.
type Watcher struct {
	view    *View
	known   map[string]Member // last yielded state, by key
	lastErr error             // last yielded error
}

// NewWatcher returns a watcher that has not yielded anything yet.
func NewWatcher(v *View) *Watcher { return &Watcher{view: v, known: make(map[string]Member)} }

// Yield yields the changes since the last call, and reports whether to continue.
func (w *Watcher) Yield(yield func(Change, error) bool) bool {
	if err := w.view.Err(); err != w.lastErr {
		if w.lastErr = err; err != nil && !yield(Change{}, err) {
			return false
		}
	}
	members, _ := w.view.Members()
	there := make(map[string]bool, len(members))
	for _, m := range members {
		there[m.Key()] = true
		was, known := w.known[m.Key()]
		w.known[m.Key()] = m
		if kind := changeOf(was, known, m); kind != "" && !yield(Change{kind, m}, nil) {
			return false
		}
	}
	for key, m := range w.known {
		if there[key] {
			continue
		}
		delete(w.known, key)
		if !yield(Change{w.view.howGone(key), m}, nil) {
			return false
		}
	}
	return true
}

// changeOf returns the kind of a node's change, or "".
func changeOf(was Member, known bool, m Member) Kind {
	switch {
	case !known || was.Instance != m.Instance:
		return Joined
	case m.State == Draining && was.State != Draining:
		return Drains
	case was.Revision != m.Revision && string(was.Encode()) != string(m.Encode()):
		return Changed
	}
	return ""
}
