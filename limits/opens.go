package limits

// Opens is the receiver's side of the room for calls that wait for a worker. Its numbers are totals
// of cost since the session began. The zero Opens promises any number. It is not safe for
// concurrent use.
type Opens struct {
	room uint64 // 0: any number
	// what the sender may have to have left so that no call of any size and priority waits
	reserve  uint64
	received uint64
	returned uint64
	granted  uint64 // as the peer knows it
}

// NewOpens returns the share of p for Opens.
func NewOpens(p *Plan) Opens {
	o := Opens{granted: uint64(p.Opens)}
	o.SetPlan(p)
	return o
}

// SetPlan replaces the share from now on. What was promised stands.
func (o *Opens) SetPlan(p *Plan) {
	o.room = uint64(p.Opens)
	o.reserve = uint64(p.LargestOpen() + p.urgent)
}

// Arrive counts an Open, or reports false if it was not promised.
func (o *Opens) Arrive(cost uint64) bool {
	if !o.Fits(cost) {
		return false
	}
	o.received += cost
	return true
}

// Fits reports whether an Open of the given cost was promised. It does not count it.
func (o *Opens) Fits(cost uint64) bool { return o.room == 0 || o.received+cost <= o.granted }

// Return takes back the cost of an Open, or a part of it, that holds no room any more.
func (o *Opens) Return(cost uint64) { o.returned += cost }

// Grant returns the total to be granted, or 0 as long as it is held back. It is held back until
// half of the room is owed, or until the peer may not have enough left for the largest Open. The
// latter counts only if idle says that no Open waits here, which would bring another chance.
func (o *Opens) Grant(idle bool) (total uint64) {
	total = o.returned + o.room
	if o.room == 0 || total <= o.granted {
		return 0
	}
	owed := total - o.granted
	short := idle && o.granted-o.received < o.reserve
	if owed < o.room/2 && !short {
		return 0
	}
	o.granted = total
	return total
}

// Room returns the share, in bytes; 0 is any number.
func (o *Opens) Room() int { return int(o.room) }

// Promised returns the cost of what the peer may send, and of what it has sent and still holds
// room. Where the peer may send any number, it returns the latter.
func (o *Opens) Promised() int {
	if o.room == 0 {
		return o.Held()
	}
	return int(o.granted - o.returned)
}

// Held returns the cost of what has arrived and still holds room.
func (o *Opens) Held() int { return int(o.received - o.returned) }

// Received returns the cost of all that has arrived.
func (o *Opens) Received() uint64 { return o.received }
