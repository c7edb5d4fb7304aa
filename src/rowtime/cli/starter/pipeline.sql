-- Hits of each page and minute, over clicks that arrive up to 30 seconds out of order.
CREATE STREAM clicks (page STRING, at TIMESTAMP)
  USING csv OPTIONS (path 'data', header 'true');

-- The time of the click becomes the rowtime. Clicks more than 30 seconds behind are refused as LATE.
CREATE VIEW in_order AS
  SELECT STREAM c.at AS ROWTIME, c.page FROM clicks AS c ORDER BY c.at WITHIN INTERVAL '30' SECOND;

CREATE STREAM minutes (minute TIMESTAMP, page STRING, hits BIGINT)
  USING json OPTIONS (path 'out/minutes');

CREATE PUMP count_clicks AS INSERT INTO minutes
  SELECT STREAM FLOOR(s.ROWTIME TO MINUTE) AS minute, page, COUNT(*) AS hits
  FROM in_order AS s GROUP BY FLOOR(s.ROWTIME TO MINUTE), page;

-- Refused rows are kept: here they are written to files of their own.
CREATE STREAM late (page STRING, at TIMESTAMP, reason STRING)
  USING json OPTIONS (path 'out/late');

CREATE PUMP keep_late AS INSERT INTO late
  SELECT STREAM page, refused_time, reason FROM in_order.rejected;
