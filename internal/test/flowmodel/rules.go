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
	HalfWindows  bool // no Credit is due before half of the window is owed
	ShrinkHeld   bool // windows shrink below the cost of the Blocks that have not been taken

	// Blocks in parts.

	NoPieces         bool // Blocks that do not fit wait until they do
	SmallWait        bool // Blocks of at most four of the smallest windows wait until they fit
	ReserveWhole     bool // the first part waits for room for all of its Block in the outbox
	PiecesExpire     bool // parts may expire in the outbox
	StaleEnd         bool // a given-up Block counts as if no Block before it had expired
	GivenUpFreed     bool // a given-up Block counts as far as it was sent, and frees its debt
	GivenUpKept      bool // a given-up Block counts as far as it was sent, and keeps its debt
	GivenUpUnrenewed bool // a null part makes no Credit due

	// Debts: see debt.go.

	NoLarge    bool // there is no room for debts, but only for windows
	GrantEarly bool // the end of a Block is granted before its application waits for it
	DebtStays  bool // the debt of a Block is not moved when its application leaves
	DebtKept   bool // a debt is kept after its Block was taken, until the direction is over
	EndedKeeps bool // a debt is kept until then, but only if the direction has ended
	LeftUnpaid bool // a debt is freed if the call ends before its Block is taken
	DebtTwice  bool // the window grows until it covers a debt, too
}
