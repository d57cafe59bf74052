package pool

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

func TestFixed_YieldsOnce(t *testing.T) {
	urls := []string{"tcp://10.0.0.2:5330", "tcp://10.0.0.1:5330"}
	r := Fixed(urls...)
	urls[0] = "changed by the caller"
	for range 2 { // a Resolver may be called again
		sets := 0
		for set, err := range r(t.Context()) {
			require.NoError(t, err)
			require.Equal(t, []Address{{URL: "tcp://10.0.0.2:5330"}, {URL: "tcp://10.0.0.1:5330"}}, set)
			set[0].URL = "changed by the user"
			sets++
		}
		require.Equal(t, 1, sets)
	}
}

func TestFixed_Errors(t *testing.T) {
	for _, urls := range [][]string{nil, {""}, {"tcp://a:1", "tcp://a:1"}} {
		yields := 0
		for set, err := range Fixed(urls...)(t.Context()) {
			require.Nil(t, set)
			require.ErrorIs(t, err, asterisque.ErrUnavailable)
			yields++
		}
		require.Equal(t, 1, yields)
	}
}

func TestCheck_Sets(t *testing.T) {
	many := make([]Address, mostAddresses+1)
	for i := range many {
		many[i].URL = fmt.Sprintf("tcp://h%d:1", i)
	}
	for name, test := range map[string]struct {
		set  []Address
		want string // in the error; empty if there is none
	}{
		"no servers":             {nil, "at least one URL"},
		"an empty set":           {[]Address{}, "at least one URL"},
		"the most there may be":  {many[:mostAddresses], ""},
		"one more":               {many, "1025 servers, and at most 1024"},
		"no URL":                 {[]Address{{URL: ""}}, "has no scheme; a URL is, for example, tcp://"},
		"no scheme":              {[]Address{{URL: "tcp://a:1"}, {URL: "h:1"}}, `"h:1"`},
		"an unknown scheme":      {[]Address{{URL: "smoke://hill:1"}}, `the scheme of "smoke://hill:1" is unknown; known are`},
		"not to be parsed":       {[]Address{{URL: "tcp://[::1"}}, `"tcp://[::1" is no URL`},
		"twice":                  {[]Address{{URL: "tcp://a:1"}, {URL: "tcp://b:1"}, {URL: "tcp://a:1"}}, "tcp://a:1 is in the set twice: name each once"},
		"twice, in capitals":     {[]Address{{URL: "tcp://a:1"}, {URL: "TCP://A:1"}}, "twice"},
		"twice, by two names":    {[]Address{{URL: "tls://10.0.0.1:1", ServerName: "a"}, {URL: "tls://10.0.0.1:1", ServerName: "b"}}, "twice"},
		"two ports":              {[]Address{{URL: "tcp://a:1"}, {URL: "tcp://a:2"}}, ""},
		"two schemes":            {[]Address{{URL: "tcp://a:1"}, {URL: "tls://a:1"}}, ""},
		"two paths, in capitals": {[]Address{{URL: "unix:/a"}, {URL: "unix:/A"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := check(test.set)
			if test.want == "" {
				require.NoError(t, err)
				require.Equal(t, test.set, got)
				return
			}
			require.Nil(t, got)
			require.ErrorIs(t, err, asterisque.ErrUnavailable)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestCheck_NoSecrets(t *testing.T) {
	for _, secret := range []string{"tcp://me:hunter22@a:1", "smoke://me:hunter22@a:1", "tcp://a:1?token=hunter22", "tcp://me:hunter22 @a:1"} {
		_, err := check([]Address{{URL: secret}, {URL: secret}})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hunter22")
	}
}

func TestCheck_URLError(t *testing.T) {
	_, err := check([]Address{{URL: "smoke://hill"}})
	require.ErrorIs(t, err, wire.ErrURL)
	_, err = check(nil)
	require.NotErrorIs(t, err, wire.ErrURL)
}

func TestCheck_Copy(t *testing.T) {
	set := []Address{{URL: "tcp://a:1"}}
	got, err := check(set)
	require.NoError(t, err)
	set[0].URL = ""
	require.Equal(t, "tcp://a:1", got[0].URL)
}
