-- wrk as the second witness: sends the requests of a file, each behind its length in eight digits.
local requests = {}
local at = 0

function init(args)
  local file = assert(io.open(args[1], "rb"))
  while true do
    local length = file:read(8)
    if not length then break end
    requests[#requests + 1] = file:read(tonumber(length))
  end
  file:close()
  distinct = #requests
end

function setup(thread)
  the_thread = thread
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency, _)
  local errors = summary.errors
  local failures = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format(
    '{"rate":%.3f,"p50_ms":%.4f,"p99_ms":%.4f,"distinct":%d,"failures":%d}\n',
    summary.requests / summary.duration * 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    the_thread:get("distinct"), failures))
end
