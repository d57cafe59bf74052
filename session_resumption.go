package asterisque

import (
	"sync"

	"github.com/asterisque-go/asterisque/internal/handshake"
	"github.com/asterisque-go/asterisque/internal/resume"
	"github.com/asterisque-go/asterisque/limits"
)

// resumeState is the state of a session that can be resumed.
type resumeState struct {
	agreed handshake.Settings // granted by the peer when the session began; these are fixed
	plan   *limits.Plan       // granted to the peer

	resume.Ticket // these lock themselves
	resume.Pacer
	suspended resume.Entry

	mu      sync.Mutex
	granted grantedLimits // by the last Grant; guarded by mu
}
