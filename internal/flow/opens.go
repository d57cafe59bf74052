package flow

// Opens is the receiver's side of the credit for calls that wait for a worker. Its numbers are
// totals of cost since the session began. The zero Opens grants any number. It is not safe for
// concurrent use.
type Opens struct {
	room uint64 // 0: any number
	// credit below which the sender may have to hold back a call of some size and priority
	reserve  uint64
	received uint64
	returned uint64
	granted  uint64 // the limit that the peer was sent
}

// NewOpens returns an Opens with its share of p.
func NewOpens(p *Plan) Opens {
	return Opens{room: uint64(p.Opens), granted: uint64(p.Opens), reserve: uint64(p.LargestOpen() + p.urgent)}
}

// Arrive counts an Open. It reports false, and counts nothing, if the peer had no credit for the
// Open.
func (o *Opens) Arrive(cost uint64) bool {
	if !o.Fits(cost) {
		return false
	}
	o.received += cost
	return true
}

// Fits reports whether the peer has credit for an Open of the given cost. It does not count the
// Open.
func (o *Opens) Fits(cost uint64) bool { return o.room == 0 || o.received+cost <= o.granted }

// Return records that cost, all or part of the cost of an Open, is free again.
func (o *Opens) Return(cost uint64) { o.returned += cost }

// Grant returns the new total to send to the peer, or 0 while the grant is held back. A grant is
// held back until half of the room is owed, or until the credit of the peer may be too small for
// the largest Open. The second condition requires idle: no Open waits here, so there would be no
// later occasion to grant.
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

// Room returns the share in bytes; 0 means any number.
func (o *Opens) Room() int { return int(o.room) }

// Promised returns the cost of all Opens that the peer may send, plus that of the Opens that hold
// room here. For a peer that may send any number, it returns the latter alone.
func (o *Opens) Promised() int {
	if o.room == 0 {
		return o.Held()
	}
	return int(o.granted - o.returned)
}

// Held returns the cost of the Opens that have arrived and hold room.
func (o *Opens) Held() int { return int(o.received - o.returned) }

// Received returns the cost of all Opens that have arrived.
func (o *Opens) Received() uint64 { return o.received }
