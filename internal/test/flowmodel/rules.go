package flowmodel

// Broken selects the rules that are not kept. The zero Broken keeps all of them.
type Broken struct {
	// Calls.

	NestedWait    bool // a nested call waits for room and a worker, as any other
	NoLending     bool // a nested call waits for a worker
	QueueFirst    bool // the Open of a stream queues before there is room for its window here
	HalfCredit    bool // credit for Opens is held back until half is owed, even if nothing waits
	ForgetCredit  bool // credit is held back for an answer that waits, and then not granted
	ReturnEarly   bool // an Open returns its cost while the answer of the reader to it waits
	AnswersPass   bool // answers do not wait at the outbound soft limit
	LeftForgotten bool // the window of a nested stream returns while Blocks of it are left

	// Windows.

	Overshoot    bool // the last Block may pass its window
	GrowAnywhere bool // windows grow into the guarantees of other streams
	DropInitial  bool // a handler begins without the room for the extra credit of its Open

	// Asks.

	NoAsks    bool // Blocks that do not fit wait, and do not ask
	LowerAsks bool // a sender that gives up takes back an unanswered Ask
	StaleAsks bool // an Ask departs although an earlier Credit answers it
	LoseAsks  bool // an Ask is dropped if a Block arrives before the Allow for it has been sent

	// Allows.

	AllowEarly    bool // an Ask is answered before all Blocks sent before it have been taken
	KeepAllows    bool // an unused Allow is not returned
	AbandonAllows bool // a receiver that leaves forgets its allowed Block
	SettleLate    bool // such a Block keeps its room until all Blocks after it are taken
	EndedKeeps    bool // and, after the end of its direction, until the call ends
	LeftUnpaid    bool // it loses its room if its call ends before it is taken
}
