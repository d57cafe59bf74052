package carrier

import (
	"log/slog"
	"time"
)

// Settings are common to the Carriers of a node. They do not change.
type Settings struct {
	Log *slog.Logger
	// idle time on the sending side after which a Ping is sent; 0: only if the peer announces one
	PingInterval time.Duration
	PingTimeout  time.Duration // silence of the peer after which it is lost
	WriteTimeout time.Duration // time of a blocked write after which the peer is lost
	Stall        time.Duration // longest time at the soft limit without a message taken
	ResumeFor    time.Duration // how long a Carrier in state Away waits for another Wire
	MaxPart      int           // bytes of the largest part of a message; 0: the protocol's limit
	Now          func() time.Duration
	Keepalive    *KeepaliveScheduler
}

// grace returns the time that an arriving message may take in addition to the time that its size
// permits.
func (s *Settings) grace() time.Duration {
	if s.PingInterval == 0 {
		return DefaultTimeout
	}
	return s.PingTimeout
}
