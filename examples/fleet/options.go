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
)

const usage = `Fleet runs replicas of a service, agents, an exchange and NATS, kills a replica, takes NATS away for a while, cuts wires at random, and ends with 1 if a call was lost or ran twice.

  fleet [-for DURATION] [-replicas N] [-agents N] [-servers 1|3]   all on this machine

Each part as a program of its own, until it is interrupted, on one machine or several:

  fleet -part nats [-listen ADDR] [-dir DIR]
  fleet -part nats -listen ADDR -dir DIR -id NAME -at ADDR -routes A,B,C    one server of three
  fleet -part replica -nats URL [-id NAME] [-listen ADDR] [-at ADDR] [-dir DIR]
  fleet -part exchange -nats URL -secret TEXT [-id NAME] [-listen ADDR]
  fleet -part agents -nats URL [-agents N] [-id NAME] [-listen ADDR] [-dir DIR] [-exchange URL -secret TEXT] [-door URL]
  fleet -part control -nats URL [-for DURATION]    shows all, and audits their calls at its end

With -exchange a fifth of the agents do no more than dial out to the exchange, and with -door a fifth reach all replicas at one address, which may be that of a balancer of load, or of one of them.

Addresses are host:port. With three NATS servers, -nats is URL,URL,URL, and -servers is 3 everywhere.

`

// options are the values of the flags.
type options struct {
	howLong                                 time.Duration
	replicas, agents, servers               int
	part, nats, listen, dir, id, at, routes string
	exchange, secret, door                  string
}

func (o *options) flags() *flag.FlagSet {
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints errors
	flags.DurationVar(&o.howLong, "for", 40*time.Second, "how long the agents work, a `DURATION` such as 60s; killed processes take time to recover")
	flags.IntVar(&o.replicas, "replicas", 3, "how many replicas `N` there are")
	flags.IntVar(&o.agents, "agents", 100, "how many agents `N` there are")
	flags.IntVar(&o.servers, "servers", 1, "how many NATS servers `N` keep what the nodes know of each other: 1, which is stopped, or 3, of which one is killed")
	flags.StringVar(&o.part, "part", "", "be one `PART` alone: nats, replica, exchange, agents or control")
	flags.StringVar(&o.nats, "nats", "", "where NATS is, `URL` or URL,URL,URL")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "where the part listens, an `ADDR` at which others reach it")
	flags.StringVar(&o.dir, "dir", "", "where the part keeps its journal or, being NATS, all it has: a folder `DIR`; by default a temporary one")
	flags.StringVar(&o.id, "id", "", "the `NAME` of the part; those of agents begin with it, which is agent by default")
	flags.StringVar(&o.at, "at", "", "with -part nats: where the other NATS servers reach this one, an `ADDR` of -routes; with -part replica: where others reach it, if that is not where it listens")
	flags.StringVar(&o.routes, "routes", "", "with -part nats: where all three NATS servers reach each other, `A,B,C`")
	flags.StringVar(&o.exchange, "exchange", "", "with -part agents: where the exchange is, a `URL` such as tcp://host:port")
	flags.StringVar(&o.secret, "secret", "", "the `TEXT` by which agents prove to the exchange that they are some")
	flags.StringVar(&o.door, "door", "", "with -part agents: where all replicas are behind one address, a `URL` such as tcp://host:port")
	return flags
}

// fitting are the valid flags of each part, beside -part.
var fitting = map[string][]string{
	"":         {"for", "replicas", "agents", "servers"},
	"nats":     {"listen", "dir", "id", "at", "routes"},
	"replica":  {"nats", "listen", "at", "dir", "id", "servers"},
	"exchange": {"nats", "listen", "id", "servers", "secret"},
	"agents":   {"nats", "listen", "dir", "id", "servers", "agents", "exchange", "secret", "door"},
	"control":  {"nats", "for", "servers"},
}

var idPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,60}$`) // an agent has a number besides

// check returns an error for invalid flags.
func (o *options) check(flags *flag.FlagSet) error {
	fit, known := fitting[o.part]
	if !known {
		return fmt.Errorf("-part: %q is none of nats, replica, exchange, agents and control; -h explains", o.part)
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

// with describes the part in an error.
func (o *options) with() string {
	if o.part == "" {
		return "without -part"
	}
	return "with -part " + o.part
}

// checkPlaces returns an error for an invalid address.
func (o *options) checkPlaces() error {
	if err := o.checkNeeds(); err != nil {
		return err
	}
	for flag, list := range map[string][]string{"listen": {o.listen}, "routes": o.routeList(), "at": splitList(o.at)} {
		for _, addr := range list {
			if _, _, err := net.SplitHostPort(addr); err != nil {
				return fmt.Errorf("-%s: %q is no host:port", flag, addr)
			}
		}
	}
	for flag, list := range map[string]string{"nats": o.nats, "exchange": o.exchange, "door": o.door} {
		for _, one := range splitList(list) {
			if u, err := url.Parse(one); err != nil || u.Host == "" {
				return fmt.Errorf("-%s: %q is no URL such as %s", flag, one, likeURL[flag])
			}
		}
	}
	return nil
}

var likeURL = map[string]string{
	"nats": "nats://127.0.0.1:4222", "exchange": "tcp://127.0.0.1:5330", "door": "tcp://127.0.0.1:5331",
}

// checkNeeds returns an error for a missing flag.
func (o *options) checkNeeds() error {
	isNATS := o.part == "nats"
	switch {
	case o.part != "" && !isNATS && o.nats == "":
		return fmt.Errorf("-part %s needs -nats; -h explains", o.part)
	case o.part == "exchange" && o.secret == "":
		return errors.New("-part exchange needs -secret; -h explains")
	case (o.exchange != "") != (o.secret != "") && o.part == "agents":
		return errors.New("-exchange and -secret go together; -h explains")
	case isNATS && (o.at != "") != (o.routes != ""):
		return errors.New("-at and -routes go together; -h explains")
	case isNATS && o.at != "" && o.id == "":
		return errors.New("-at and -routes need -id; -h explains")
	case isNATS && o.at != "" && !slices.Contains(o.routeList(), o.at):
		return fmt.Errorf("-at: %s is none of -routes %s", o.at, o.routes)
	}
	return nil
}

func (o *options) routeList() []string { return splitList(o.routes) }

// splitList returns the elements of a list with commas.
func splitList(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// complete sets defaults for missing values. forget removes a temporary folder.
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

// journal returns the file name of the part's journal.
func (o *options) journal() string { return filepath.Join(o.dir, o.id+".journal") }

// ways returns how many agents are at the exchange, and how many go through the door. The remaining
// agents reach the replicas by their name.
func (o *options) ways() (outside, atDoor int) {
	if o.exchange != "" {
		outside = (o.agents + 4) / 5
	}
	if o.door != "" {
		atDoor = (o.agents - outside + 3) / 4
	}
	return outside, atDoor
}

// wanted returns the complete fleet.
func (o *options) wanted() wanted {
	_, atDoor := o.ways()
	return wanted{replicas: o.replicas, agents: o.agents, sessions: (o.agents-atDoor)*o.replicas + atDoor}
}
