package path

// phase says what the Model looks for.
//
//	start ── the rate grows no more ───────────────────► probe
//	                                                      │  ▲
//	   a mark is back that was alone in flight            │  │ the round trip is old,
//	                                                      ▼  │ or marks are late twice
//	                                                     cruise
type phase uint8

const (
	start  phase = iota // what the path delivers: more and more is in flight
	probe               // the round trip: all that is in flight arrives first
	cruise              // both are known, and more is in flight than the path holds
)
