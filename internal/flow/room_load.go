package flow

// Load is the part of a Room that is granted, by its use.
type Load struct {
	Windows int `json:"windows"` // bytes granted to streams
	Extra   int `json:"extra"`   // bytes granted to the streams that the peer opens next
	Large   int `json:"large"`   // bytes granted to Blocks that do not fit into their windows
	Opening int `json:"opening"` // streams of this side that wait for a window
	Asking  int `json:"asking"`  // pipes that wait for room for a large Block
}

// Load returns the current load of r.
func (r *Room) Load() Load {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.plan
	l := Load{
		Windows: (p.Workers+p.Callers-int(r.workers+r.callers))*p.Window + p.Spare - r.spare - r.extraLeft(),
		Extra:   r.extraLeft(),
		Large:   p.Large - r.large,
	}
	if r.lines != nil {
		l.Opening, l.Asking = r.lines.opening.len, r.lines.asking.len
	}
	return l
}
