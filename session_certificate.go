package asterisque

import (
	"crypto/x509"
	"time"

	"github.com/asterisque-go/asterisque/codec"
)

// certificateExpiry ends a session when a certificate expires. It does not lock itself.
type certificateExpiry struct {
	timer *time.Timer // nil before the first certificate
}

// start calls end when cert expires, and cancels an earlier start.
func (e *certificateExpiry) start(cert *x509.Certificate, end func(*Abort)) {
	e.stop()
	e.timer = time.AfterFunc(time.Until(cert.NotAfter), func() {
		end(codec.ErrUnauthorized.Withf("the certificate of %v expired at %v", cert.Subject, cert.NotAfter))
	})
}

func (e *certificateExpiry) stop() {
	if e.timer != nil {
		e.timer.Stop()
	}
}
