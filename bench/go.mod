module github.com/asterisque-go/asterisque/bench

go 1.25.0

replace (
	github.com/asterisque-go/asterisque => ../
	github.com/asterisque-go/asterisque/codec/msgpack => ../codec/msgpack
	github.com/asterisque-go/asterisque/wire/natswire => ../wire/natswire
	github.com/asterisque-go/asterisque/wire/wswire => ../wire/wswire
)

require (
	connectrpc.com/connect v1.21.0
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	github.com/asterisque-go/asterisque v0.0.0
	github.com/asterisque-go/asterisque/codec/msgpack v0.0.0
	github.com/asterisque-go/asterisque/wire/natswire v0.0.0
	github.com/asterisque-go/asterisque/wire/wswire v0.0.0
	github.com/containerd/ttrpc v1.2.10
	github.com/hashicorp/yamux v0.1.2
	github.com/libp2p/go-yamux/v5 v5.1.0
	github.com/nats-io/nats-server/v2 v2.14.5
	github.com/nats-io/nats.go v1.53.1
	github.com/quic-go/quic-go v0.61.0
	github.com/stretchr/testify v1.12.1
	github.com/xtaci/smux v1.5.57
	gonum.org/v1/plot v0.17.0
	google.golang.org/grpc v1.84.0
	google.golang.org/protobuf v1.36.12
	storj.io/drpc v1.0.0
)

require (
	codeberg.org/go-fonts/liberation v0.5.0 // indirect
	codeberg.org/go-latex/latex v0.2.0 // indirect
	codeberg.org/go-pdf/fpdf v0.11.1 // indirect
	git.sr.ht/~sbinet/gg v0.7.0 // indirect
	github.com/ajstarks/svgo v0.0.0-20211024235047-1546f124cd8b // indirect
	github.com/antithesishq/antithesis-sdk-go v0.7.2-default-no-op // indirect
	github.com/coder/websocket v1.8.15 // indirect
	github.com/containerd/log v0.1.0 // indirect
	github.com/fxamacker/cbor/v2 v2.10.0 // indirect
	github.com/golang/freetype v0.0.0-20170609003504-e2365dfdc4a0 // indirect
	github.com/google/go-tpm v0.9.8 // indirect
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/libp2p/go-buffer-pool v0.0.2 // indirect
	github.com/minio/highwayhash v1.0.4 // indirect
	github.com/nats-io/jwt/v2 v2.8.3 // indirect
	github.com/nats-io/nkeys v0.4.17 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/philhofer/fwd v1.2.0 // indirect
	github.com/sirupsen/logrus v1.9.4 // indirect
	github.com/tinylib/msgp v1.6.5 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	github.com/zeebo/errs v1.2.2 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.55.0 // indirect
	golang.org/x/image v0.30.0 // indirect
	golang.org/x/net v0.58.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	golang.org/x/time v0.15.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260706201446-f0a921348800 // indirect
)
