-- SPDX-License-Identifier: ISC
-- wrk: heartbeats of nodes in turn, each with its own token and a rising sequence number. Argument: a file of lines
-- TOKEN BEGIN END, where the sequence number goes between BEGIN and END.
local nodes, n, seq = {}, 0, 0

function init(args)
   for line in io.lines(args[1]) do
      local token, head, tail = line:match("^(%S+)\t(.-)\t(.-)$")
      nodes[#nodes + 1] = {
         headers = {["Authorization"] = "Bearer " .. token, ["Content-Type"] = "application/json",
                    ["Host"] = "x"},
         head = head, tail = tail}
   end
   seq = tonumber(args[2])
   wrk.method = "POST"
   wrk.path = "/api/v1/heartbeat"
end

function request()
   n = n + 1
   if n % #nodes == 0 then seq = seq + 1 end
   local node = nodes[n % #nodes + 1]
   return wrk.format(nil, nil, node.headers, node.head .. seq .. node.tail)
end
