package roomtest_test

import (
	"flag"
	"testing"

	"github.com/asterisque-go/asterisque/internal/leak"
	"github.com/asterisque-go/asterisque/internal/race"
	"github.com/asterisque-go/asterisque/internal/roomtest"
	_ "github.com/asterisque-go/asterisque/wire/smuxwire" // smux://
)

var soak = flag.Bool("soak", false, "run all there is, which takes minutes")

func TestMain(m *testing.M) { leak.Main(m) }

func TestHonestProgramsNeverStandStillOverTCP(t *testing.T) {
	extent := roomtest.Usual
	if race.Enabled {
		extent = roomtest.Brief
	}
	roomtest.Run(t, roomtest.URL("tcp://127.0.0.1:0"), orSoak(extent))
}

// orSoak returns how much of the scenarios is run.
func orSoak(e roomtest.Extent) roomtest.Extent {
	if *soak {
		return roomtest.Soak
	}
	return e
}

func TestHonestProgramsNeverStandStill(t *testing.T) {
	for name, wires := range map[string]roomtest.Kind{
		"over net.Pipe": roomtest.NetPipe,
		"over TLS":      roomtest.URL("tls://127.0.0.1:0"),
		"over smux":     roomtest.URL("smux://127.0.0.1:0"),
		"in memory":     roomtest.URL("mem://room"),
	} {
		t.Run(name, func(t *testing.T) { roomtest.Run(t, wires, orSoak(roomtest.Brief)) })
	}
}

func TestHonestProgramsNeverStandStillWhileTheirWiresAreCut(t *testing.T) {
	if !*soak {
		t.Skip("takes minutes: see -soak")
	}
	for name, wires := range map[string]roomtest.Kind{
		"TCP":      roomtest.Proxied,
		"net.Pipe": roomtest.NetPipe,
		"TLS":      roomtest.URL("tls://127.0.0.1:0"),
		"smux":     roomtest.URL("smux://127.0.0.1:0"),
	} {
		t.Run(name, func(t *testing.T) { roomtest.RunCut(t, wires, roomtest.Soak) })
	}
}
