//go:build unix

package chaos

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// work is the parameters of a call.
type work struct {
	Call  int64         // a unique number
	Takes time.Duration // duration of the function
}

// book runs once for each call, and rebook may run more often. They answer with the id of the run.
var (
	book   = asterisque.Func[work, string](20, "book")
	rebook = asterisque.Func[work, string](21, "rebook")
)

// theName is the name of the replicas.
const theName = "orders"

// lease is the time without a sign after which a replica loses its calls.
const lease = time.Second

// leaveTime is the time limit for running calls when a replica is shut down. Sessions that wait for
// their peers may need more, and are ended then.
const leaveTime = 4 * lease

// replicaPlan is the plan of a replica.
type replicaPlan struct {
	ID       string
	NATS     string // URLs of the servers
	Replicas int    // number of servers that store the data
	Socket   string // listen address of the replica
	Address  string // address for other nodes
	Register string // the file
}

// runReplica is a replica of the name until ctx ends.
func runReplica(ctx context.Context, plan replicaPlan, ready func(string)) error {
	reg, err := openRegister(plan.Register, plan.ID)
	if err != nil {
		return err
	}
	c, err := plan.join(ctx, reg)
	if err != nil {
		return err
	}
	defer c.Close()
	ready("joined")
	select {
	case <-ctx.Done():
	case <-c.Done():
		return c.Err()
	}
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	if err := c.Shutdown(leaving); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// join joins the cluster, and retries during an outage of NATS.
func (p replicaPlan) join(ctx context.Context, reg *register) (*cluster.Cluster, error) {
	svc := asterisque.NewService()
	book.Handle(svc, reg.run)
	rebook.Handle(svc, reg.run)
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	for {
		// left by the process before
		if err := os.Remove(p.Socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		trying, cancel := context.WithTimeout(ctx, startTime/12)
		c, err := cluster.Join(trying, p.config(), append(resuming(), asterisque.WithService(svc), asterisque.WithLogger(log))...)
		cancel()
		if err == nil {
			return c, nil
		}
		log.Warn("joining", "error", err)
		if !wait.HoldOff(ctx, 50*time.Millisecond) {
			return nil, err
		}
	}
}

func (p replicaPlan) config() cluster.Config {
	return cluster.Config{
		Name: theName, ID: p.ID, NATS: p.NATS, Options: natsOptions(), Replicas: p.Replicas,
		Listen: []string{"unix://" + p.Socket}, Addresses: []string{p.Address}, ResumeAnywhere: true,
		Durable: &cluster.Durable{
			Calls: 1 << 18, Bytes: 256 << 20, Share: 1, Lease: lease, Idempotent: []uint16{rebook.Number()},
		},
		Queue: queueing(),
	}
}

// queueing is the Queue configuration of all posters and replicas.
func queueing() *cluster.Queue { return &cluster.Queue{Longest: time.Hour} }

// natsOptions make a node reconnect quickly, and only through the forwarders.
func natsOptions() []nats.Option {
	return []nats.Option{nats.ReconnectWait(50 * time.Millisecond), nats.IgnoreDiscoveredServers()}
}

// resuming are the options of both sides for the resume of sessions.
func resuming() []asterisque.Option {
	return []asterisque.Option{
		asterisque.WithResume(asterisque.Resume{For: 10 * time.Second}),
		asterisque.WithAccess(asterisque.Access{PlainCredentials: true}),
	}
}

// run is the handler of the functions. It continues after the loss of its caller.
func (r *register) run(_ context.Context, w work) (string, error) {
	id := rand.Text()[:8]
	if err := r.note(w.Call, id, begun); err != nil {
		return "", err
	}
	wait.HoldOff(context.Background(), w.Takes)
	return id, r.note(w.Call, id, ended)
}
