-- SPDX-License-Identifier: ISC
-- wrk: connects of users who have a session each. Arguments: TOKEN USERS.
local token, users, n = "", 1, 0

function init(args)
   token, users = args[1], tonumber(args[2])
   wrk.method = "POST"
   wrk.path = "/api/v1/connections"
   wrk.headers["Authorization"] = "Bearer " .. token
   wrk.headers["Content-Type"] = "application/json"
end

function request()
   n = n + 1
   return wrk.format(nil, nil, nil, '{"pool":"office","user":"user-' .. n % users .. '"}')
end
