package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// dnsName is a URL with a host name, and the configuration of its lookup.
type dnsName struct {
	url     *url.URL // each server replaces its host
	shown   string   // the URL without its secrets
	host    string
	port    string // empty for SRV records
	network string
	lookup  Lookup
}

// newName returns the name of a URL, or an error if the URL can never work.
func newName(rawURL string, how DNSConfig) (*dnsName, error) {
	if err := wire.CheckURL(rawURL); err != nil {
		return nil, failed(err, "DNS has no use for this URL")
	}
	u, err := transport.ParseURL(rawURL)
	if err != nil {
		return nil, failed(err, "DNS has no use for this URL")
	}
	n := &dnsName{url: u, shown: transport.ShowURL(rawURL), host: u.Hostname(), port: u.Port(), network: how.Network, lookup: how.Lookup}
	if n.lookup == nil {
		n.lookup = net.DefaultResolver
	}
	if n.network == "" {
		n.network = "ip"
	}
	if why := n.misfit(); why != "" {
		return nil, failed(transport.BadURL(errors.New(why)), "DNS has no use for %s", n.shown)
	}
	if !slices.Contains([]string{"ip", "ip4", "ip6"}, n.network) {
		return nil, asterisque.ErrUnavailable.Withf("DNSConfig.Network is %q for %s: it has to be ip, ip4, ip6 or empty", n.network, n.shown)
	}
	return n, nil
}

// misfit returns the reason why the URL can never work, or "".
func (n *dnsName) misfit() string {
	port, err := strconv.ParseUint(n.port, 10, 16)
	switch {
	case n.host == "" || n.serverName() == "":
		return "the name is missing; for example tls://orders.example.com:5330"
	case n.port != "" && (err != nil || port == 0):
		return "the port has to be 1 to 65535"
	case n.port == "" && n.isAddress():
		return "an IP address needs a port; for example tls://127.0.0.1:5330"
	case n.port != "" && strings.HasPrefix(n.host, "_"):
		return "SRV records have the port: leave it away"
	}
	return ""
}

// isAddress reports whether the host is an IP address, which needs no lookup.
func (n *dnsName) isAddress() bool {
	_, err := netip.ParseAddr(n.host)
	return err == nil
}

// serverName returns the name that certificates have to prove: the host without "_service._proto".
func (n *dnsName) serverName() string {
	host := strings.TrimSuffix(n.host, ".")
	for strings.HasPrefix(host, "_") {
		_, host, _ = strings.Cut(host, ".")
	}
	return host
}

// lookUp does one lookup, and returns a set in an order that depends only on its elements.
func (n *dnsName) lookUp(ctx context.Context) ([]Address, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	ask := n.lookUpHosts
	if n.port == "" {
		ask = n.lookUpRecords
	}
	servers, err := ask(ctx)
	var unknown *net.DNSError
	switch {
	case errors.As(err, &unknown) && unknown.IsNotFound:
		return nil, failed(err, "DNS does not know the servers of %s: see that the name is right and has records", n.shown)
	case err != nil:
		return nil, failed(err, "the servers of %s could not be looked up", n.shown)
	case len(servers) == 0:
		return nil, asterisque.ErrUnavailable.Withf("DNS has no servers for %s: its answer was empty", n.shown)
	}
	set := make([]Address, len(servers))
	for i, hostPort := range servers {
		u := *n.url
		u.Host = hostPort
		set[i] = Address{URL: u.String(), ServerName: n.serverName()}
	}
	slices.SortFunc(set, func(a, b Address) int { return cmp.Compare(a.URL, b.URL) })
	set, err = check(slices.Compact(set))
	if err != nil {
		return nil, failed(err, "the answer of DNS for %s cannot be used", n.shown)
	}
	return set, nil
}

// lookUpHosts returns the addresses of the name, with its port.
func (n *dnsName) lookUpHosts(ctx context.Context) (servers []string, err error) {
	all, err := n.lookup.LookupNetIP(ctx, n.network, n.host)
	if err != nil {
		return nil, err
	}
	for _, ip := range all {
		ip = ip.Unmap()
		if !ip.IsValid() || ip.IsUnspecified() || ip.IsMulticast() {
			return nil, fmt.Errorf("%v is not the address of a server", ip)
		}
		servers = append(servers, net.JoinHostPort(ip.String(), n.port))
	}
	return servers, nil
}

// lookUpRecords returns the hosts and ports of the SRV records with the lowest priority.
func (n *dnsName) lookUpRecords(ctx context.Context) (servers []string, err error) {
	service, proto := "asterisque", "tcp"
	if strings.HasPrefix(n.host, "_") {
		service, proto = "", "" // the name contains them
	}
	_, records, err := n.lookup.LookupSRV(ctx, service, proto, n.host)
	if err != nil {
		return nil, err
	}
	if slices.Contains(records, nil) {
		return nil, errors.New("the Lookup returned a nil record")
	}
	lowest := uint16(math.MaxUint16)
	for _, r := range records {
		lowest = min(lowest, r.Priority)
	}
	for _, r := range records {
		if r.Priority > lowest {
			continue
		}
		host := strings.TrimSuffix(strings.ToLower(r.Target), ".")
		if host == "" || r.Port == 0 {
			return nil, fmt.Errorf("a record says that the service is not there: host %q, port %d", r.Target, r.Port)
		}
		servers = append(servers, net.JoinHostPort(host, strconv.Itoa(int(r.Port))))
	}
	return servers, nil
}
