package store

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"vksplat/internal/fault"
)

const (
	bucketScheme  = "s3://"
	amazon        = "https://s3.amazonaws.com"
	usualRegion   = "us-east-1" // of servers without regions
	connectWithin = 10 * time.Second
	answerWithin  = time.Minute // for a request without content
	openTries     = 7           // of the first request: 10 s
)

// openBucket opens a bucket, and lists it as a test.
func openBucket(o Options) (Root, error) {
	b, err := newBucket(o)
	if err != nil {
		return nil, err
	}
	err = b.retry(openTries, func() error {
		ctx, cancel := b.bound(answerWithin)
		defer cancel()
		for info := range b.objects(ctx, "", 1) {
			return info.Err
		}
		return nil
	})
	if err != nil {
		return nil, explain("open root", b.label, "", err)
	}
	return b, nil
}

// newBucket makes a bucket from its options, without requests.
func newBucket(o Options) (*bucket, error) {
	const example = "as in url = \"s3://bucket/farm\""
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return nil, setupError(bucketScheme, example, "cannot parse the url") // it may hold a password
	case u.User != nil:
		return nil, setupError(bucketScheme+u.Host, "put credentials into a file, and name it by credentials = \"...\"",
			"a url must not contain credentials")
	case u.Port() != "" || u.RawQuery != "" || u.Fragment != "":
		return nil, setupError(o.URL, example+", with the server as endpoint", "it names no bucket or no prefix")
	case o.Umask+o.Group+o.Mark != "":
		return nil, setupError(o.URL, "leave them out; the bucket's policy says who may read",
			"umask, group and mark apply to folders only")
	}
	if err := s3utils.CheckValidBucketNameStrict(u.Host); err != nil {
		return nil, setupError(o.URL, example, "%q is not a bucket name: %w", u.Host, err)
	}
	prefix := strings.Trim(u.Path, "/")
	if prefix != "" && (!fs.ValidPath(prefix) || strings.ContainsAny(prefix, "\\\x00")) {
		return nil, setupError(o.URL, example, "%q is not a prefix", prefix)
	}
	endpoint := cmp.Or(o.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), amazon)
	server, err := url.Parse(endpoint)
	if err != nil || server.Scheme != "https" && server.Scheme != "http" || server.Host == "" || server.User != nil ||
		strings.Trim(server.Path, "/") != "" {
		return nil, setupError(o.URL, "as in endpoint = \"https://minio.lab:9000\"",
			"the endpoint is not a server address")
	}
	isAmazon := s3utils.IsAmazonEndpoint(*server)
	region := cmp.Or(o.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	if region == "" && !isAmazon {
		region = usualRegion
	}
	transport, err := newTransport(o)
	if err != nil {
		return nil, err
	}
	keys, err := findCredentials(o, isAmazon)
	if err != nil {
		return nil, err
	}
	client, err := minio.NewCore(server.Host,
		&minio.Options{Creds: keys, Secure: server.Scheme == "https", Transport: transport, Region: region,
			BucketLookup: lookupOf(o), MaxRetries: 1})
	if err != nil {
		return nil, setupError(o.URL, "check endpoint and region", "%w", err)
	}
	label := strings.TrimSuffix(bucketScheme+u.Host+"/"+prefix, "/")
	if !isAmazon {
		label = strings.TrimSuffix(server.Scheme+"://"+server.Host+"/"+u.Host+"/"+prefix, "/")
	}
	return &bucket{client: client, name: u.Host, prefix: prefix, label: label, part: partSize, amazon: isAmazon,
		keys: keys, patience: newPatience()}, nil
}

// lookupOf says whether requests name the bucket in their path or in the host name.
func lookupOf(o Options) minio.BucketLookupType {
	switch {
	case o.PathStyle == nil:
		return minio.BucketLookupAuto
	case *o.PathStyle:
		return minio.BucketLookupPath
	}
	return minio.BucketLookupDNS
}

func newTransport(o Options) (*http.Transport, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: connectWithin, KeepAlive: 15 * time.Second}).DialContext
	t.MaxIdleConnsPerHost = 16
	t.IdleConnTimeout = 30 * time.Second
	t.ResponseHeaderTimeout = answerWithin
	t.DisableCompression = true // objects come as they are
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CA != "" {
		pem, err := os.ReadFile(o.CA)
		if err != nil {
			return nil, setupError(o.URL, "ca names a file of certificates in PEM", "%w", err)
		}
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, setupError(o.URL, "ca names a file of certificates in PEM", "%s has no certificate", o.CA)
		}
	}
	return t, nil
}

// findCredentials finds the keys of a bucket: in the file that the roots name, the environment, the user's shared file,
// or the machine's role.
func findCredentials(o Options, isAmazon bool) (*credentials.Credentials, error) {
	if o.Credentials != "" {
		if err := isPrivate(o.Credentials); err != nil {
			return nil, setupError(o.URL,
				"credentials is the absolute path of a file like ~/.aws/credentials that only its owner can read "+
					"(chmod 600)", "%w", err)
		}
	}
	providers := []credentials.Provider{&credentials.FileAWSCredentials{Filename: o.Credentials,
		Profile: cmp.Or(o.Profile, "default")}}
	if o.Credentials == "" {
		providers = []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{Profile: o.Profile}}
		if o.Profile != "" { // which the environment has none of
			providers = providers[1:]
		}
		if isAmazon { // other servers know nothing of roles of machines
			providers = append(providers, &credentials.IAM{Client: &http.Client{Timeout: connectWithin}})
		}
	}
	keys := credentials.NewChainCredentials(providers)
	value, err := keys.GetWithContext(&credentials.CredContext{Client: http.DefaultClient})
	if err == nil && (value.AccessKeyID == "" || value.SecretAccessKey == "") {
		err = errors.New("no credentials were found")
	}
	if profile := cmp.Or(o.Profile, os.Getenv("AWS_PROFILE")); err != nil && profile != "" &&
		(o.Credentials == "" || o.Profile != "") {
		file := cmp.Or(o.Credentials, os.Getenv("AWS_SHARED_CREDENTIALS_FILE"), "~/.aws/credentials")
		return nil, setupError(o.URL, fmt.Sprintf(
			"check profile in the file of %s, or AWS_PROFILE; the section needs aws_access_key_id and "+
				"aws_secret_access_key: [%s] in %s",
			fault.Setting("roots"), profile, file), "no credentials of the profile %q were found", profile)
	}
	if err != nil { // what it says may quote the file
		return nil, setupError(o.URL, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a file by credentials "+
			"= \"...\" with a section [default], aws_access_key_id and aws_secret_access_key",
			"no credentials were found")
	}
	return keys, nil
}

// isPrivate checks that only its owner can read a file.
func isPrivate(file string) error {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return err
	case !filepath.IsAbs(file):
		return fmt.Errorf("%s is not an absolute path", file)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", file)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("others may read %s", file)
	}
	return nil
}
