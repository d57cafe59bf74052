package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/wire"
)

// options are the values of the flags.
type options struct {
	listen, policy, id string
	nats, prefix       string
	alone              bool
	cert, key, ca      string
	perNode, sessions  int
}

func (o *options) flags() *flag.FlagSet {
	flags := flag.NewFlagSet("exchange", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints errors
	flags.StringVar(&o.listen, "listen", "tcp://127.0.0.1:5330", "accept nodes at `URL`: tcp://, tls:// or unix:")
	flags.StringVar(&o.policy, "policy", "", "a `FILE` with the rules: which nodes may reach which")
	flags.StringVar(&o.id, "id", "", "the `ID` of the exchange, which no other one has; by default a random one")
	flags.StringVar(&o.nats, "nats", "", "where the NATS servers are, a `URL`; by default that of this machine, which is started if none is there")
	flags.StringVar(&o.prefix, "prefix", "main", "the part `P` of the subjects in NATS that is the cluster's own")
	flags.BoolVar(&o.alone, "alone", false, "be an exchange by itself, without NATS")
	flags.StringVar(&o.cert, "cert", "", "the certificate of this side, a PEM `FILE`")
	flags.StringVar(&o.key, "key", "", "its key, a PEM `FILE`")
	flags.StringVar(&o.ca, "ca", "", "the certificate of the authority of the nodes, a PEM `FILE`")
	flags.IntVar(&o.perNode, "per-node", 1000, "how many relayed sessions `N` each node may have")
	flags.IntVar(&o.sessions, "sessions", 100_000, "how many relayed sessions `N` there may be")
	return flags
}

// check returns an error if the options are invalid.
func (o *options) check() error {
	switch {
	case (o.cert == "") != (o.key == ""):
		return errors.New("-cert and -key go together; -h explains")
	case o.ca != "" && o.cert == "":
		return errors.New("-ca needs -cert and -key; -h explains")
	case o.cert != "" && !strings.HasPrefix(o.listen, "tls:"):
		return fmt.Errorf("-cert is for -listen tls://, and nothing is encrypted at %s", o.listen)
	case o.alone && o.nats != "":
		return errors.New("-nats goes without -alone; -h explains")
	case o.perNode < 1 || o.sessions < 1:
		return errors.New("-per-node and -sessions are 1 at least")
	}
	return wire.CheckURL(o.listen)
}

// rules returns the rules of the policy, or none without a policy. An empty policy is an error.
func (o *options) rules() ([]exchange.Rule, error) {
	if o.policy == "" {
		return nil, nil
	}
	f, err := os.Open(o.policy)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rules, err := exchange.ReadPolicy(f)
	if err == nil && len(rules) == 0 {
		err = fmt.Errorf("%s has no rule; without -policy no node may reach another one", o.policy)
	}
	return rules, err
}

// secure returns the TLS configuration for nodes; nil: no TLS. Nodes without a certificate may
// connect, and have no identity.
func (o *options) secure() (*tls.Config, error) {
	if o.cert == "" {
		return nil, nil
	}
	own, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{own}}
	if o.ca == "" {
		return cfg, nil
	}
	text, err := os.ReadFile(o.ca)
	if err != nil {
		return nil, err
	}
	cfg.ClientCAs, cfg.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
	if !cfg.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate", o.ca)
	}
	return cfg, nil
}
