package path

// phase is the measurement that the Model makes.
//
//	start ── the rate grows no more ───────────────────► probe
//	                                                      │  ▲
//	   a mark is back that was alone in flight            │  │ the round trip is old,
//	                                                      ▼  │ or marks are late twice
//	                                                     cruise
type phase uint8

const (
	start  phase = iota // of the rate: more and more bytes are in flight
	probe               // of the round trip: first, all bytes in flight arrive
	cruise              // none: both are known, and the bytes in flight exceed the capacity
)
