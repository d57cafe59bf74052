package exchange

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

// at returns a node of a domain.
func at(id, region string) cluster.Member {
	return cluster.Member{Name: "orders", ID: id, Instance: "1", State: cluster.Present, Region: region}
}

func TestFind_SameIDIsStable(t *testing.T) {
	s := searchResult{domains: make(map[string]*domainAnswer)}
	for _, domain := range []string{"south", "north", "west"} {
		require.True(t, s.take(foundNodes{Domain: domain, Members: []cluster.Member{at("a", domain)}, Last: true}, "orders"))
	}
	for range 20 {
		require.Equal(t, "north", s.all()["a"].Region)
	}
}

func TestFind_IncompleteAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := searchResult{domains: make(map[string]*domainAnswer)}
		for i := range mostDomains {
			require.False(t, s.take(foundNodes{Domain: string(rune('a' + i))}, "orders"))
		}
		whole := foundNodes{Domain: "north", Members: []cluster.Member{at("a", "north")}, Last: true}
		require.False(t, s.take(whole, "orders"), "at most this number of domains")
		fakeclock.Sleep(forgotten + time.Second)
		require.True(t, s.forget())
		require.True(t, s.take(whole, "orders"))
		require.Contains(t, s.all(), "a")
	})
}

func TestFind_InvalidMembers(t *testing.T) {
	s := searchResult{domains: make(map[string]*domainAnswer)}
	large := at("large", "")
	large.Metadata = map[string]string{"a": string(make([]byte, 1<<20))}
	other := at("other", "")
	other.Name = "stock"
	s.take(foundNodes{Domain: "north", Members: []cluster.Member{large, other, at("no token", ""), at("a", "")}, Last: true}, "orders")
	require.Len(t, s.all(), 1)
	require.Contains(t, s.all(), "a")
}
