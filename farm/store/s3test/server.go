// Package s3test is a server of objects in memory, for tests: as much of Amazon's S3 as package store asks for, with
// conditional writes, uploads in parts, and faults on demand. It knows the protocol, not who speaks it.
package s3test

import (
	"bytes"
	"crypto/md5" // what the protocol's tags of content are
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Access and Secret are the keys that the server takes.
const (
	Access = "tester"
	Secret = "tester-secret"
)

// Server has one bucket.
type Server struct {
	*httptest.Server
	Bucket        string
	Region        string        // "": any
	Skew          time.Duration // its clock is ahead by so much
	Denied        bool          // the keys may do nothing
	Unconditional bool          // conditions of writes are not known
	PageSize      int           // objects in an answer; 0: 1000

	mutex   sync.Mutex // guards what follows
	fault   Fault
	objects map[string]object
	uploads map[string]*upload
	asked   int
}

// Fault may answer a request in place of the server, and says whether it has.
type Fault func(w http.ResponseWriter, r *http.Request) bool

type object struct {
	data     []byte
	tag      string
	modified time.Time
}

type upload struct {
	key   string
	parts map[int][]byte
}

// New starts a server with a bucket.
func New(bucket string) *Server {
	s := &Server{Bucket: bucket, objects: map[string]object{}, uploads: map[string]*upload{}}
	s.Server = httptest.NewServer(s)
	return s
}

// Keys lists the objects.
func (s *Server) Keys() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// Uploads lists the keys of uploads that nobody completed.
func (s *Server) Uploads() (keys []string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, u := range s.uploads {
		keys = append(keys, u.key)
	}
	slices.Sort(keys)
	return keys
}

// Parts counts the parts of these uploads.
func (s *Server) Parts() (n int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, u := range s.uploads {
		n += len(u.parts)
	}
	return n
}

// Store makes an object.
func (s *Server) Store(key string, data []byte) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.objects[key] = object{data, tagOf(data), time.Now()}
}

// Load returns the content of an object.
func (s *Server) Load(key string) []byte {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.objects[key].data
}

// SetFault has requests go wrong from now on.
func (s *Server) SetFault(f Fault) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.fault = f
}

// Cut reads up to so many bytes of a request and ends the connection.
func Cut(w http.ResponseWriter, r *http.Request, after int64) {
	_, _ = io.CopyN(io.Discard, r.Body, after) // there may be fewer
	connection, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = connection.Close() // as it is meant to be
	}
}

// Fail answers with an error.
func Fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s, as a test wants it</Message></Error>", code, code)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	s.asked++
	fault := s.fault
	s.mutex.Unlock()
	if fault == nil || !fault(w, r) {
		s.Serve(w, r)
	}
}

// Serve answers a request without a fault.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the connection is gone
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if !s.admit(w, r, bucket, body) {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	q := r.URL.Query()
	switch {
	case key == "" && q.Has("uploads"):
		s.listUploads(w, q)
	case key == "":
		s.list(w, q)
	case q.Has("uploads"), q.Has("uploadId"):
		s.multipart(w, r, key, q, body)
	case r.Method == http.MethodPut:
		s.put(w, r, key, body)
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	default:
		s.get(w, r, key)
	}
}

// admit answers requests that are not to be served.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, bucket string, body []byte) bool {
	sum := sha256.Sum256(body)
	said := r.Header.Get("X-Amz-Content-Sha256")
	when, _ := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	_, credential, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	credential, _, _ = strings.Cut(credential, ",")
	scope := strings.Split(credential, "/") // key/day/region/s3/aws4_request
	switch {
	case len(scope) != 5 || scope[0] != Access:
		Fail(w, http.StatusForbidden, "InvalidAccessKeyId")
	case time.Since(when).Abs() > 15*time.Minute || s.Skew.Abs() > 15*time.Minute:
		Fail(w, http.StatusForbidden, "RequestTimeTooSkewed")
	case s.Region != "" && scope[2] != s.Region:
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, "<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region is "+
			"wrong</Message><Region>%s</Region></Error>", s.Region)
	case s.Denied:
		Fail(w, http.StatusForbidden, "AccessDenied")
	case bucket != s.Bucket:
		Fail(w, http.StatusNotFound, "NoSuchBucket")
	case len(said) == 64 && said != hex.EncodeToString(sum[:]):
		Fail(w, http.StatusBadRequest, "XAmzContentSHA256Mismatch")
	default:
		return true
	}
	return false
}

func tagOf(data []byte) string {
	sum := md5.Sum(data)
	return hex.EncodeToString(sum[:])
}

// holds says whether the condition of a write holds.
func (s *Server) holds(r *http.Request, key string) bool {
	o, there := s.objects[key]
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	return s.Unconditional || (none != "*" || !there) && (match == "" || there && strings.Trim(match, `"`) == o.tag)
}

func (s *Server) put(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	if !s.holds(r, key) {
		Fail(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	o := object{body, tagOf(body), time.Now()}
	s.objects[key] = o
	w.Header().Set("ETag", strconv.Quote(o.tag))
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, key string) {
	o, there := s.objects[key]
	if !there {
		Fail(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	w.Header().Set("ETag", strconv.Quote(o.tag))
	w.Header().Set("Content-Type", "application/octet-stream")
	if len(o.data) == 0 && r.Header.Get("Range") != "" { // net/http would send nothing with 200
		Fail(w, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
		return
	}
	http.ServeContent(w, r, "", o.modified, bytes.NewReader(o.data)) // ranges and conditions of reads
}

func (s *Server) multipart(w http.ResponseWriter, r *http.Request, key string, q url.Values, body []byte) {
	id := q.Get("uploadId")
	u := s.uploads[id]
	if u == nil && !q.Has("uploads") {
		Fail(w, http.StatusNotFound, "NoSuchUpload")
		return
	}
	switch r.Method {
	case http.MethodDelete:
		delete(s.uploads, id)
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPut:
		n, err := strconv.Atoi(q.Get("partNumber"))
		if err != nil {
			Fail(w, http.StatusBadRequest, "InvalidArgument")
			return
		}
		u.parts[n] = body
		w.Header().Set("ETag", strconv.Quote(tagOf(body)))
	case http.MethodGet: // its parts, which nobody asks for one by one
		answer(w, struct {
			XMLName xml.Name `xml:"ListPartsResult"`
			Key     string
		}{Key: key})
	case http.MethodPost:
		if u == nil {
			id = fmt.Sprintf("upload-%d", s.asked)
			s.uploads[id] = &upload{key, map[int][]byte{}}
			answer(w, struct {
				XMLName               xml.Name `xml:"InitiateMultipartUploadResult"`
				Bucket, Key, UploadId string
			}{Bucket: s.Bucket, Key: key, UploadId: id})
			return
		}
		s.complete(w, u, id, body)
	}
}

func (s *Server) complete(w http.ResponseWriter, u *upload, id string, body []byte) {
	var list struct {
		Part []struct {
			PartNumber int
			ETag       string
		}
	}
	if err := xml.Unmarshal(body, &list); err != nil {
		Fail(w, http.StatusBadRequest, "MalformedXML")
		return
	}
	var data, sums []byte
	for _, p := range list.Part {
		part, sent := u.parts[p.PartNumber]
		if !sent || strings.Trim(p.ETag, `"`) != tagOf(part) {
			Fail(w, http.StatusBadRequest, "InvalidPart")
			return
		}
		sum := md5.Sum(part)
		data, sums = append(data, part...), append(sums, sum[:]...)
	}
	o := object{data, fmt.Sprintf("%s-%d", tagOf(sums), len(list.Part)), time.Now()}
	s.objects[u.key] = o
	delete(s.uploads, id)
	answer(w, struct {
		XMLName           xml.Name `xml:"CompleteMultipartUploadResult"`
		Bucket, Key, ETag string
	}{Bucket: s.Bucket, Key: u.key, ETag: o.tag})
}

type listed struct {
	Key, ETag    string
	Size         int
	LastModified string
}

func (s *Server) list(w http.ResponseWriter, q url.Values) {
	most := s.PageSize
	if n, err := strconv.Atoi(q.Get("max-keys")); most == 0 && err == nil {
		most = n
	}
	var page []listed
	if most == 0 {
		most = 1000
	}
	after, more := q.Get("continuation-token"), false
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if key <= after || !strings.HasPrefix(key, q.Get("prefix")) {
			continue
		}
		if more = len(page) == most; more {
			break
		}
		o := s.objects[key]
		page = append(page, listed{key, o.tag, len(o.data), o.modified.UTC().Format("2006-01-02T15:04:05.000Z")})
	}
	next := ""
	if more {
		next = page[len(page)-1].Key
	}
	answer(w, struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		Name                  string
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []listed
	}{Name: s.Bucket, IsTruncated: more, NextContinuationToken: next, Contents: page})
}

func (s *Server) listUploads(w http.ResponseWriter, q url.Values) {
	type pending struct{ Key, UploadId, Initiated string }
	var list []pending
	for id, u := range s.uploads {
		if strings.HasPrefix(u.key, q.Get("prefix")) {
			list = append(list, pending{u.key, id, "2026-01-01T00:00:00.000Z"})
		}
	}
	answer(w, struct {
		XMLName xml.Name `xml:"ListMultipartUploadsResult"`
		Upload  []pending
	}{Upload: list})
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(v) // whoever asked may be gone
}
