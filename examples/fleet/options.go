package main

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque/cluster"
)

const usage = `Fleet runs replicas of a service, agents and NATS, kills a replica, takes NATS away for a while, and ends with 1 if a call was lost or ran twice.

  fleet [-for DURATION] [-replicas N] [-agents N] [-servers 1|3]   all on this machine

Each part as a program of its own, until it is interrupted, on one machine or several:

  fleet -part nats [-listen ADDR] [-dir DIR]
  fleet -part nats -listen ADDR -dir DIR -id NAME -at ADDR -routes A,B,C    one server of three
  fleet -part replica -nats URL [-id NAME] [-listen ADDR] [-dir DIR]
  fleet -part agents -nats URL [-agents N] [-id NAME] [-listen ADDR] [-dir DIR]
  fleet -part control -nats URL [-for DURATION]    shows all, and audits their calls at its end

Addresses are host:port. With three NATS servers, -nats is URL,URL,URL, and -servers is 3 everywhere.

`

// options are what the flags say.
type options struct {
	howLong                                 time.Duration
	replicas, agents, servers               int
	part, nats, listen, dir, id, at, routes string
}

func (o *options) flags() *flag.FlagSet {
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints errors
	flags.DurationVar(&o.howLong, "for", 20*time.Second, "how long the agents work, a `DURATION` such as 60s; what is killed takes its time to recover")
	flags.IntVar(&o.replicas, "replicas", 3, "how many replicas `N` there are")
	flags.IntVar(&o.agents, "agents", 100, "how many agents `N` there are")
	flags.IntVar(&o.servers, "servers", 1, "how many NATS servers `N` keep what the nodes know of each other: 1, which is stopped, or 3, of which one is killed")
	flags.StringVar(&o.part, "part", "", "be one `PART` alone: nats, replica, agents or control")
	flags.StringVar(&o.nats, "nats", "", "where NATS is, `URL` or URL,URL,URL")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "where the part listens, an `ADDR` at which others reach it")
	flags.StringVar(&o.dir, "dir", "", "where the part keeps its journal or, being NATS, all it has: a folder `DIR`; by default a temporary one")
	flags.StringVar(&o.id, "id", "", "the `NAME` of the part; those of agents begin with it, which is agent by default")
	flags.StringVar(&o.at, "at", "", "with -part nats: where the other NATS servers reach this one, an `ADDR` of -routes")
	flags.StringVar(&o.routes, "routes", "", "with -part nats: where all three NATS servers reach each other, `A,B,C`")
	return flags
}

// fitting are the flags that go with each part, beside -part.
var fitting = map[string][]string{
	"":        {"for", "replicas", "agents", "servers"},
	"nats":    {"listen", "dir", "id", "at", "routes"},
	"replica": {"nats", "listen", "dir", "id", "servers"},
	"agents":  {"nats", "listen", "dir", "id", "servers", "agents"},
	"control": {"nats", "for", "servers"},
}

var idPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,60}$`) // an agent has a number besides

// check says what is wrong with what the flags say.
func (o *options) check(flags *flag.FlagSet) error {
	fit, known := fitting[o.part]
	if !known {
		return fmt.Errorf("-part: %q is none of nats, replica, agents and control; -h explains", o.part)
	}
	var err error
	flags.Visit(func(f *flag.Flag) {
		if f.Name != "part" && !slices.Contains(fit, f.Name) {
			err = fmt.Errorf("-%s %v does not go %s; -h explains", f.Name, f.Value, o.with())
		}
	})
	switch {
	case err != nil:
		return err
	case o.howLong < 2*time.Second || o.howLong > time.Hour:
		return fmt.Errorf("-for: %v is outside 2s..1h", o.howLong)
	case o.replicas < 2 || o.replicas > 20:
		return fmt.Errorf("-replicas: %d is outside 2..20", o.replicas)
	case o.agents < 1 || o.agents > 500:
		return fmt.Errorf("-agents: %d is outside 1..500", o.agents)
	case o.servers != 1 && o.servers != 3:
		return fmt.Errorf("-servers: %d is neither 1 nor 3", o.servers)
	case o.id != "" && !idPattern.MatchString(o.id):
		return fmt.Errorf("-id: %q has other than 1 to 60 letters, digits, '-' and '_'", o.id)
	}
	return o.checkPlaces()
}

// with names the part for people.
func (o *options) with() string {
	if o.part == "" {
		return "without -part"
	}
	return "with -part " + o.part
}

// checkPlaces says what is wrong with where something is.
func (o *options) checkPlaces() error {
	needs := o.part != "" && o.part != "nats"
	switch {
	case needs && o.nats == "":
		return fmt.Errorf("-part %s needs -nats; -h explains", o.part)
	case (o.at != "") != (o.routes != ""):
		return errors.New("-at and -routes go together; -h explains")
	case o.at != "" && o.id == "":
		return errors.New("-at and -routes need -id; -h explains")
	case o.at != "" && !slices.Contains(o.routeList(), o.at):
		return fmt.Errorf("-at: %s is none of -routes %s", o.at, o.routes)
	}
	for flag, list := range map[string][]string{"listen": {o.listen}, "routes": o.routeList()} {
		for _, addr := range list {
			if _, _, err := net.SplitHostPort(addr); err != nil {
				return fmt.Errorf("-%s: %q is no host:port", flag, addr)
			}
		}
	}
	for one := range strings.SplitSeq(o.nats, ",") {
		if u, err := url.Parse(one); needs && (err != nil || u.Host == "") {
			return fmt.Errorf("-nats: %q is no URL such as nats://127.0.0.1:4222", one)
		}
	}
	return nil
}

func (o *options) routeList() []string {
	if o.routes == "" {
		return nil
	}
	return strings.Split(o.routes, ",")
}

// complete gives what has no value one. forget removes a temporary folder.
func (o *options) complete() (forget func() error, err error) {
	if o.id == "" {
		switch o.part {
		case "replica":
			o.id = ordersName + "-" + strings.ToLower(rand.Text()[:6])
		case "agents":
			o.id = "agent"
		}
	}
	if o.dir != "" {
		return func() error { return nil }, os.MkdirAll(o.dir, 0o700)
	}
	o.dir, err = os.MkdirTemp("", "fleet-")
	return func() error { return os.RemoveAll(o.dir) }, err
}

// journal returns where the journal of the part is.
func (o *options) journal() string { return filepath.Join(o.dir, o.id+".journal") }

// config returns how a node of the part joins the cluster.
func (o *options) config(name, id string) cluster.Config {
	return cluster.Config{
		Name: name, ID: id, NATS: o.nats, Replicas: o.servers,
		// by default after 2 s, which is long for a show
		Options: []nats.Option{nats.ReconnectWait(200 * time.Millisecond)},
	}
}
