-- Sixteen requests in one write.
init = function()
  local requests = {}
  for n = 1, 16 do requests[n] = wrk.format("GET", wrk.path) end
  sixteen = table.concat(requests)
end
request = function() return sixteen end
