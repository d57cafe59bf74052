package flowmodel

// Broken says which rules are not kept. In the zero Broken all of them are.
type Broken struct {
	// Calls.

	NestedWait    bool // a call within another one waits for room and a worker, as any other
	NoLending     bool // it waits for a worker
	QueueFirst    bool // the Open of a stream queues before there is room for its window here
	HalfCredit    bool // credit for Opens is held back until half is owed, even if nothing waits
	ForgetCredit  bool // it is held back for an answer that waits, and not given when that leaves
	ReturnEarly   bool // an Open gives its cost back while the answer of the reader to it waits
	AnswersPass   bool // answers do not wait at the outbound soft limit
	LeftForgotten bool // the window of a stream within a call returns while Blocks of it are left

	// Windows.

	Overshoot    bool // the last Block may pass its window
	GrowAnywhere bool // windows grow into what is guaranteed to others

	// Asks.

	NoAsks    bool // Blocks that do not fit wait, and do not ask
	LowerAsks bool // who gives up takes back an Ask that has not been answered
	StaleAsks bool // an Ask departs although a Credit has come first that answers it
	LoseAsks  bool // an Ask is forgotten if a Block comes before the Allow for it has left

	// Allows.

	AllowEarly    bool // an Ask is answered before all that was sent before it has been taken
	KeepAllows    bool // what was allowed is not given back if it is not used
	AbandonAllows bool // a receiver that leaves forgets that a Block was allowed for it
	SettleLate    bool // such a Block keeps its room until all that came behind it is taken
	EndedKeeps    bool // and if the end of its direction has come, until the call ends
	LeftUnpaid    bool // it loses its room if its call ends before it is taken
}
