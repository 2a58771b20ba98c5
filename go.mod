module vksplat

go 1.26.0

require (
	// gRPC over net/http, for workers and clients of a farm: they speak to Temporal's server, and gRPC's own library would
	// make the trainer a fifth larger.
	connectrpc.com/connect v1.21.1
	// Configuration files. It knows the line of every value, also of one that our own checks refuse.
	github.com/BurntSushi/toml v1.6.0
	// WebSockets for the viewer of a training.
	github.com/coder/websocket v1.8.15
	// The Vulkan binding. Only package vk names it; what it lacks or gets wrong goes through vk's own shim.
	github.com/goki/vulkan v1.0.8
	// Sets of pages of device memory in the arena of package vk.
	github.com/kelindar/bitmap v1.5.3
	// Zstandard for SPZ version 4, which the standard library lacks, and gzip at twice its speed for the earlier versions.
	github.com/klauspost/compress v1.20.3
	// Roots of the farm in buckets that speak S3: MinIO's client signs and retries as all such servers take it. The last version that does not carry its linters as
	// tools into every module that needs it.
	github.com/minio/minio-go/v7 v7.1.0
	// Tests of the command as scripts: what is typed, printed and written, in files that read like a session.
	github.com/rogpeppe/go-internal v1.14.1
	// Tests check job documents of the farm against their JSON Schema with it: a judge that is not our parser.
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	// Subcommands, their help and "did you mean".
	github.com/spf13/cobra v1.10.1
	// The flags under cobra, with underscores accepted for dashes.
	github.com/spf13/pflag v1.0.10
	// The second Vulkan binding, under -tags vulkango: it keeps package vk honest about what is the binding's.
	github.com/vulkan-go/vulkan v0.0.0-20221209234627-c0a353ae26c8
	// Temporal's API, for tests alone: what package farm/wire says is held against it. Only tests and farmd import it.
	go.temporal.io/api v1.63.5
	// WebP photos; the first version that bounds what a small lossless file can make it allocate.
	golang.org/x/image v0.45.0
	// How much room the disk has, on Windows.
	golang.org/x/sys v0.49.0
	// Whether standard output is a terminal, on every system.
	golang.org/x/term v0.47.0
	// Names of photos from a Mac spell accents in another way. Package net/http has the same tables in it anyway.
	golang.org/x/text v0.43.0
	// Cholesky factors and singular values for the adjustment of cameras.
	gonum.org/v1/gonum v0.17.0
	// gRPC's library, for tests alone: a server that plays Temporal's.
	google.golang.org/grpc v1.82.1
	// Messages of Temporal's server, whose Go make messages writes; package protowire for TensorBoard's events.
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/go-ini/ini v1.67.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/grpc-ecosystem/grpc-gateway/v2 v2.22.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/kelindar/simd v1.1.2 // indirect
	github.com/klauspost/cpuid/v2 v2.2.11 // indirect
	github.com/klauspost/crc32 v1.3.0 // indirect
	github.com/minio/crc64nvme v1.1.1 // indirect
	github.com/minio/md5-simd v1.1.2 // indirect
	github.com/nexus-rpc/nexus-proto-annotations v0.1.0 // indirect
	github.com/philhofer/fwd v1.2.0 // indirect
	github.com/rs/xid v1.6.0 // indirect
	github.com/stretchr/testify v1.10.0 // indirect
	github.com/tinylib/msgp v1.6.1 // indirect
	github.com/zeebo/xxh3 v1.1.0 // indirect
	go.yaml.in/yaml/v3 v3.0.4 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/tools v0.51.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260414002931-afd174a4e478 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260414002931-afd174a4e478 // indirect
)
